//! Runs classifiers where they can do no harm.
//!
//! Each call gets a fresh instance and loses it afterwards, so that nothing is
//! kept between two, nothing leaks, and a trap poisons nobody. What a guest does
//! (trap, hang, flood, lie) is data, a [`CallFailure`](crate::reason::CallFailure), and never an error of
//! the host. Everything that a guest may use is a named limit ([`Limits`]).
//!
//! This is the only module that names `wasmtime`; its `Store` is always
//! qualified, ours is [`crate::store::Store`].
//!
//! A guest is called synchronously, on the caller's thread, which must have a
//! stack of at least [`STACK_MIN_BYTES`]: on a smaller one a guest that recurses
//! would abort the process.

use std::{sync::Arc, thread};

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig, component::Linker,
};

mod admit;
mod bindings;
mod cache;
mod call;
mod compile;
mod description;
mod lift;
mod limits;
mod lower;
mod purity;
mod ticker;

pub use admit::{Given, Guest, LoadFailure, WIT_PACKAGE};
pub use cache::{Cache, Miss};
pub use call::Spent;
pub use compile::{Compilations, Compiler, compile};
pub(crate) use description::is_name as is_plugin_name;
pub use description::{Description, Interest, Reads};
pub use limits::{LimitError, Limits};
pub use purity::Impurity;

use call::State;
use compile::Compiling;

/// The smallest stack of a thread that calls a guest, in bytes. wasmtime gives a
/// guest 512 KiB of it; on 512 KiB in all a recursing guest was seen to abort
/// the process, 600 KiB was enough.
pub const STACK_MIN_BYTES: usize = 2 << 20;

/// Instances that may live at once. Calls beyond wait for their thread.
const MAX_INSTANCES: u32 = 16;

/// A component built of many core modules needs as many instances: a Python
/// guest about 38.
const CORE_INSTANCES_PER_COMPONENT: u32 = 40;

/// The engine, with limits, in which guests are compiled and called.
#[derive(Clone)]
pub struct Sandbox {
    engine: Engine,
    linker: Arc<Linker<State>>,
    limits: Arc<Limits>,
    compiling: Arc<Compiling>,
}

impl std::fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sandbox")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The engine could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot start the WebAssembly engine")]
pub struct SandboxError(#[source] wasmtime::Error);

impl Sandbox {
    /// As [`with`](Self::with), but compiles in this process, as the binary never does.
    ///
    /// # Errors
    ///
    /// If this machine cannot run WebAssembly.
    pub fn new(limits: Limits) -> Result<Self, SandboxError> {
        Self::with(limits, Compiler::Here, None)
    }

    /// Makes an engine with these limits, which takes its code from this compiler and cache, and
    /// starts its ticker.
    ///
    /// # Errors
    ///
    /// If this machine cannot run WebAssembly.
    pub fn with(
        limits: Limits,
        compiler: Compiler,
        cache: Option<Cache>,
    ) -> Result<Self, SandboxError> {
        let engine = engine(&limits).map_err(SandboxError)?;
        ticker::start(&engine).map_err(|err| SandboxError(err.into()))?;
        let mut linker = Linker::new(&engine);
        call::add_log(&mut linker).map_err(SandboxError)?;
        Ok(Self {
            engine,
            linker: Arc::new(linker),
            limits: Arc::new(limits),
            compiling: Arc::new(Compiling::new(compiler, cache)),
        })
    }

    /// What became of the components that were to be compiled.
    #[must_use]
    pub fn compilations(&self) -> &Arc<Compilations> {
        &self.compiling.counts
    }

    /// The limits that guests run under.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// What code depends on. It depends on no limit, so that whoever compiles need not know them.
fn config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(512 << 10)
        // The same outcome on every machine: no NaN bits to tell two apart, and
        // no instruction that may round as the processor likes.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false);
    config
}

fn engine(limits: &Limits) -> wasmtime::Result<Engine> {
    let config = config();
    let mut pool = PoolingAllocationConfig::default();
    let memories = MAX_INSTANCES * 4;
    pool.total_component_instances(MAX_INSTANCES)
        .total_core_instances(MAX_INSTANCES * CORE_INSTANCES_PER_COMPONENT)
        .max_core_instances_per_component(CORE_INSTANCES_PER_COMPONENT)
        .total_memories(memories)
        .max_memories_per_component(4)
        .total_tables(MAX_INSTANCES * limits.tables)
        .max_tables_per_component(limits.tables)
        .max_tables_per_module(limits.tables)
        .table_elements(limits.table_elements as usize)
        .max_memory_size(limits.memory_bytes)
        .max_core_instance_size(4 << 20)
        .max_component_instance_size(4 << 20)
        // What a batch touched is zeroed in place where the kernel can tell
        // which pages that were (Linux 6.7): a fresh instance then costs 10 us,
        // and 24 us where its pages have to be faulted in again.
        .linear_memory_keep_resident(1 << 20)
        .table_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut pooled = config.clone();
    pooled.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));

    Engine::new(&pooled).or_else(|error| {
        // The pool reserves address space, 4 GiB a memory, which `ulimit -v` or
        // a small machine may refuse.
        tracing::warn!(%error, "no pool of instances on this machine, each call will cost more");
        Engine::new(&config)
    })
}

/// Runs `call` on a thread with a stack that guests may use, and waits for it.
///
/// # Panics
///
/// If the thread cannot be started, or `call` panics.
pub fn on_guest_stack<R: Send>(call: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("guest".to_owned())
            .stack_size(STACK_MIN_BYTES)
            .spawn_scoped(scope, call)
            .expect("a thread can be started");
        match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
