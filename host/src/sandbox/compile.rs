//! From a component to code that can run.
//!
//! A compiler's time and memory are the component's to decide: a file of a megabyte can take
//! minutes and gigabytes. So the program that serves compiles in a child of it ([`apart`]), with
//! bounds, and takes its code from there, or from what such a child made before ([`Cache`]).
//! Whatever comes is loaded in one place, which is the only one that calls `deserialize`.
//!
//! What is compiled is compiled once for as long as anybody has it: other settings, or another file
//! of the same content, take the code that there is.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use sha2::{Digest as _, Sha256};
use wasmtime::{Engine, OutOfMemory, component::Component};

use super::{
    Cache, LoadFailure, Sandbox,
    cache::{Key, Miss},
    call::one_line,
};
use crate::{
    apart::{self, Bounds, Failure, Task},
    reason::Reason,
};

/// Where components are compiled.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// In this process, with no bounds: where nothing is compiled that is not ours, and there is
    /// no program to start.
    Here,
    /// In a child process.
    Apart {
        /// This program.
        program: PathBuf,
    },
}

/// Compiles a component: the work of [`Task::Compile`].
///
/// # Errors
///
/// If it cannot be compiled, or there is not the memory for it.
pub fn compile(component: &[u8]) -> Result<Vec<u8>, Failure> {
    // Instances are made elsewhere, so there is no pool, which is no part of what has to agree.
    let engine = Engine::new(&super::config()).map_err(|it| refused(&it))?;
    engine
        .precompile_component(component)
        .map_err(|it| refused(&it))
}

fn refused(err: &wasmtime::Error) -> Failure {
    if err.is::<OutOfMemory>() {
        Failure::Memory
    } else {
        Failure::Refused(one_line(&format!("{err:#}")))
    }
}

/// A component that is compiled and loaded.
pub(super) struct Compiled {
    pub(super) component: Component,
}

impl Compiled {
    /// Bytes that its code takes.
    pub(super) fn n_bytes(&self) -> usize {
        let range = self.component.image_range();
        range.end.addr() - range.start.addr()
    }
}

/// What loads came to, as far as code is concerned.
#[derive(Debug, Default)]
pub struct Compilations {
    /// Code that was compiled.
    pub compiled: AtomicU64,
    /// Code that was in the cache.
    pub cached: AtomicU64,
    /// Code that was loaded already.
    pub shared: AtomicU64,
    /// Components that took more time or memory than they may.
    pub over_limit: AtomicU64,
    /// Components that could not be compiled for another reason.
    pub failed: AtomicU64,
    nanos: AtomicU64,
    misses: [AtomicU64; Miss::ALL.len()],
}

impl Compilations {
    /// How long compiling took, of all that was compiled or was not.
    #[must_use]
    pub fn spent(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Relaxed))
    }

    /// How often code was not taken from the cache, by why.
    pub fn misses(&self) -> impl Iterator<Item = (Miss, u64)> + '_ {
        let counts = self.misses.iter().map(|it| it.load(Relaxed));
        Miss::ALL.iter().copied().zip(counts)
    }

    fn took(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Relaxed);
    }

    fn missed(&self, why: Miss) {
        let idx = Miss::ALL.iter().position(|it| *it == why);
        if let Some(count) = idx.and_then(|it| self.misses.get(it)) {
            count.fetch_add(1, Relaxed);
        }
    }
}

/// What turns components into code.
pub(super) struct Compiling {
    compiler: Compiler,
    cache: Option<Cache>,
    pub(super) counts: Arc<Compilations>,
    /// What is loaded, for as long as anybody has it, by the digest of the component.
    loaded: Mutex<BTreeMap<[u8; 32], Weak<Compiled>>>,
}

impl Compiling {
    pub(super) fn new(compiler: Compiler, cache: Option<Cache>) -> Self {
        Self {
            compiler,
            cache,
            counts: Arc::default(),
            loaded: Mutex::default(),
        }
    }

    fn known(&self, digest: &[u8; 32]) -> Option<Arc<Compiled>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.get(digest).and_then(Weak::upgrade)
    }

    fn know(&self, digest: [u8; 32], compiled: &Arc<Compiled>) {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.retain(|_, it| 0 < it.strong_count());
        loaded.insert(digest, Arc::downgrade(compiled));
    }
}

impl Sandbox {
    /// This program, where what is others' is looked into in a child of it; none where that is done
    /// here.
    pub(crate) fn program(&self) -> Option<&Path> {
        match &self.compiling.compiler {
            Compiler::Here => None,
            Compiler::Apart { program } => Some(program),
        }
    }

    /// The code of a component, from wherever there is some.
    pub(super) fn compiled(&self, component: &[u8]) -> Result<Arc<Compiled>, LoadFailure> {
        let Compiling { cache, counts, .. } = &*self.compiling;
        let digest: [u8; 32] = Sha256::digest(component).into();
        if let Some(known) = self.compiling.known(&digest) {
            counts.shared.fetch_add(1, Relaxed);
            return Ok(known);
        }
        let entry = cache
            .as_ref()
            .map(|it| (it, Key::new(&digest, &self.engine)));
        let cached = entry.as_ref().and_then(|(cache, key)| {
            // What an engine does not take is of another, whatever its entry says.
            let found = cache.get(key);
            let found = found.and_then(|it| self.load(&it).map_err(|_| Miss::Foreign));
            found.map_err(|why| counts.missed(why)).ok()
        });
        let component = if let Some(cached) = cached {
            counts.cached.fetch_add(1, Relaxed);
            cached
        } else {
            let began = Instant::now();
            let code = self.compile_now(component);
            counts.took(began.elapsed());
            let loaded = code.and_then(|code| {
                let loaded = self.load(&code).map_err(|it| refused(&it))?;
                if let Some((cache, key)) = &entry {
                    cache.put(key, &code);
                }
                Ok(loaded)
            });
            let count = match &loaded {
                Ok(_) => &counts.compiled,
                Err(Failure::Time | Failure::Memory) => &counts.over_limit,
                Err(_) => &counts.failed,
            };
            count.fetch_add(1, Relaxed);
            loaded.map_err(|it| self.why_not(it))?
        };
        let compiled = Arc::new(Compiled { component });
        self.compiling.know(digest, &compiled);
        Ok(compiled)
    }

    fn compile_now(&self, component: &[u8]) -> Result<Vec<u8>, Failure> {
        match &self.compiling.compiler {
            Compiler::Here => self
                .engine
                .precompile_component(component)
                .map_err(|it| refused(&it)),
            Compiler::Apart { program } => {
                let bounds = Bounds {
                    memory_bytes: self.limits.compile_memory_bytes,
                    time: Duration::from_secs(self.limits.compile_seconds),
                };
                apart::run(program, Task::Compile, bounds, component)
            }
        }
    }

    /// Loads code that this program compiled.
    #[allow(unsafe_code, reason = "code that is loaded is trusted: see below")]
    fn load(&self, code: &[u8]) -> wasmtime::Result<Component> {
        // SAFETY: `deserialize` wants bytes that `precompile_component` wrote and nobody changed
        // since. These come straight from it (`Compiler::Here`); or from a child that runs this
        // same program, through a pipe that nobody else has, and which ended well after its last
        // byte; or from a file in a folder that only this user may write to, which has this user
        // as its owner and the checksum that was written with it (`Cache::get`). None of them
        // comes from a folder of plugins: `inspect` refuses what is no component. Whether they
        // are of this engine, version and processor is checked by wasmtime itself.
        unsafe { Component::deserialize(&self.engine, code) }
    }

    fn why_not(&self, failure: Failure) -> LoadFailure {
        let limit = |what: &str, value: String| {
            let message = format!(
                "compiling it takes more than the {value} of the limit {what}: raise it if you trust \
                 the file"
            );
            LoadFailure::new(Reason::CompileLimit, message)
        };
        match failure {
            Failure::Time => limit(
                "compile-seconds",
                format!("{} seconds", self.limits.compile_seconds),
            ),
            Failure::Memory => limit(
                "compile-memory-bytes",
                format!("{} bytes", self.limits.compile_memory_bytes),
            ),
            Failure::Refused(it) => LoadFailure::new(Reason::CompileFailed, one_line(&it)),
            it @ (Failure::Crashed(_) | Failure::NotRun(_)) => {
                let message = format!("while it was compiled, {it}");
                LoadFailure::new(Reason::CompileFailed, one_line(&message))
            }
        }
    }
}

#[cfg(test)]
mod tests;
