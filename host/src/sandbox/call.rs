//! One call into a guest: its instance, what it uses up, and how it ended.

use std::{sync::Arc, time::Duration};

use wasmtime::{
    ResourceLimiter, Trap,
    component::{Linker, WasmStr},
};

use super::{
    Guest, bindings,
    bindings::{log, types},
    lift,
    limits::Limits,
    lower,
    ticker::TICK,
};
use crate::{
    interner::Interner,
    outcome::Outcome,
    reason::{CallFailure, Reason},
    subject::Subject,
    text::{Visible, cut},
};

/// What an instance carries: its limits, and what it was seen to do.
pub(super) struct State {
    plugin: Arc<str>,
    limits: Arc<Limits>,
    memory_bytes: usize,
    /// The memory that it asked for last and was refused, in bytes.
    refused_memory: Option<usize>,
    n_log_lines: u32,
    /// What it logged, until it is written: as much as one call may log.
    lines: Vec<(log::Level, String)>,
    /// The line in which the SDK reports a panic.
    panic: Option<String>,
    /// Whether what it logs was logged before.
    is_quiet: bool,
}

impl State {
    fn new(plugin: &Arc<str>, limits: &Arc<Limits>) -> Self {
        Self {
            plugin: Arc::clone(plugin),
            limits: Arc::clone(limits),
            memory_bytes: 0,
            refused_memory: None,
            n_log_lines: 0,
            lines: Vec::new(),
            panic: None,
            is_quiet: false,
        }
    }
}

/// Fuel that a line costs, beside what the guest spends to write it: a line that
/// is dropped is not even read, but it is not free.
const FUEL_PER_LOG_LINE: u64 = 32;

/// Gives guests the one function that they may call.
///
/// By hand rather than as generated, which copies each line before anyone can
/// say that it is one too many: a flood of long ones spent more time than fuel.
pub(super) fn add_log(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut instance = linker.instance("portent:classifier/log@0.1.0")?;
    instance.func_wrap(
        "log",
        |mut store: wasmtime::StoreContextMut<'_, State>, (level, line): (log::Level, WasmStr)| {
            let fuel = store.get_fuel()?;
            store.set_fuel(fuel.checked_sub(FUEL_PER_LOG_LINE).ok_or(Trap::OutOfFuel)?)?;
            let state = store.data_mut();
            state.n_log_lines = state.n_log_lines.saturating_add(1);
            let is_dropped = state.limits.log_lines < state.n_log_lines;
            // Even where the log is full: it may say why the guest is to trap.
            if is_dropped && level != log::Level::Error {
                return Ok(());
            }
            let line = line.to_str(&store)?.into_owned();
            store.data_mut().log(level, &line, is_dropped);
            Ok(())
        },
    )
}

impl State {
    fn log(&mut self, level: log::Level, line: &str, is_dropped: bool) {
        let line = cut(line, self.limits.log_line_bytes);
        if level == log::Level::Error && line.starts_with("panicked at ") {
            self.panic = Some(one_line(line));
        }
        if !is_dropped && !self.is_quiet {
            self.lines.push((level, line.to_owned()));
        }
    }

    /// Writes what it logged. Not while it runs: who reads our log may be slow, and the time
    /// would be the guest's.
    fn write_lines(&mut self) {
        let plugin = &self.plugin;
        for (level, line) in self.lines.drain(..) {
            let line = Visible(&line);
            match level {
                log::Level::Debug => tracing::debug!(target: "guest", %plugin, "{line}"),
                log::Level::Info => tracing::info!(target: "guest", %plugin, "{line}"),
                log::Level::Warn => tracing::warn!(target: "guest", %plugin, "{line}"),
                log::Level::Error => tracing::error!(target: "guest", %plugin, "{line}"),
            }
        }
    }
}

/// However a call ends, if it came to one.
impl Drop for State {
    fn drop(&mut self) {
        self.write_lines();
    }
}

impl ResourceLimiter for State {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // All memories of the instance together.
        let total = self.memory_bytes - current.min(self.memory_bytes) + desired;
        if self.limits.memory_bytes < total {
            self.refused_memory = Some(total);
            return Ok(false);
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= self.limits.table_elements as usize)
    }
}

/// What calls used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// How many calls, failed ones among them.
    pub calls: u64,
    /// Units of fuel.
    pub fuel: u64,
}

/// An instance, and the store that it lives in.
pub(super) struct Instance {
    store: wasmtime::Store<State>,
    plugin: bindings::Plugin,
    fuel: u64,
}

impl Instance {
    /// A fresh instance that may use so much fuel, its start included.
    ///
    /// # Errors
    ///
    /// If the guest's start fails, or it wants more than the limits.
    pub(super) fn new(
        pre: &bindings::PluginPre<State>,
        plugin: &Arc<str>,
        limits: &Arc<Limits>,
        fuel: u64,
    ) -> Result<Self, CallFailure> {
        let mut store = Self::store(pre, plugin, limits, fuel);
        match pre.instantiate(&mut store) {
            Ok(plugin) => Ok(Self {
                store,
                plugin,
                fuel,
            }),
            Err(err) => Err(failure(&err, store.data(), fuel)),
        }
    }

    /// What an instance may use, with everything bounded before it is made: a
    /// start function runs with it.
    pub(super) fn store(
        pre: &bindings::PluginPre<State>,
        plugin: &Arc<str>,
        limits: &Arc<Limits>,
        fuel: u64,
    ) -> wasmtime::Store<State> {
        let mut store = wasmtime::Store::new(pre.engine(), State::new(plugin, limits));
        store.limiter(|state| state);
        store.set_hostcall_fuel(limits.lifted_bytes);
        // One tick more than asked for: the current one is partly spent.
        let ticks = Limits::deadline(fuel)
            .as_millis()
            .div_ceil(TICK.as_millis());
        store.set_epoch_deadline(u64::try_from(ticks).unwrap_or(u64::MAX / 2) + 1);
        store
            .set_fuel(fuel)
            .expect("the engine is configured to consume fuel");
        store
    }

    /// Asks the plugin what it is.
    pub(super) fn describe(mut self) -> Result<bindings::described::Description, CallFailure> {
        let descriptor = self.plugin.portent_classifier_descriptor();
        let described = descriptor.call_describe(&mut self.store);
        self.end(described)
    }

    /// Asks the plugin what is wrong with its settings.
    pub(super) fn check_settings(mut self, json: &str) -> Result<Result<(), String>, CallFailure> {
        let descriptor = self.plugin.portent_classifier_descriptor();
        let checked = descriptor.call_check_settings(&mut self.store, json);
        self.end(checked)
    }

    fn classify(
        mut self,
        settings: &str,
        subjects: &[types::Subject<'_>],
        spent: &mut Spent,
    ) -> Result<Result<Vec<types::Outcome>, String>, CallFailure> {
        let classifier = self.plugin.portent_classifier_classifier();
        let outcomes = classifier.call_classify(&mut self.store, settings, subjects);
        let left = self.store.get_fuel().unwrap_or(0);
        spent.fuel += self.fuel.saturating_sub(left);
        self.end(outcomes)
    }

    fn end<T>(mut self, result: wasmtime::Result<T>) -> Result<T, CallFailure> {
        self.store.data_mut().write_lines();
        let state = self.store.data();
        let dropped = state.n_log_lines.saturating_sub(state.limits.log_lines);
        if 0 < dropped && !state.is_quiet {
            tracing::warn!(
                plugin = %state.plugin, dropped, limit = state.limits.log_lines,
                "log lines of a plugin were dropped"
            );
        }
        result.map_err(|err| failure(&err, state, self.fuel))
    }
}

impl Guest {
    /// Asks for the outcomes of these subjects, in a fresh instance. There is
    /// one result for each, in their order. What is said over and over is held once,
    /// in `interner`. What the call used up is added to `spent`, however it ends.
    ///
    /// # Errors
    ///
    /// If the call as a whole failed: none of the subjects has an outcome then.
    pub fn classify(
        &self,
        subjects: &[Subject],
        interner: &Interner,
        spent: &mut Spent,
    ) -> Result<Vec<Result<Outcome, CallFailure>>, CallFailure> {
        self.call(subjects, interner, spent, false)
    }

    /// As [`classify`](Self::classify), of subjects that it was asked about before: what it logs is
    /// known.
    pub(super) fn classify_again(
        &self,
        subjects: &[Subject],
        interner: &Interner,
        spent: &mut Spent,
    ) -> Result<Vec<Result<Outcome, CallFailure>>, CallFailure> {
        self.call(subjects, interner, spent, true)
    }

    fn call(
        &self,
        subjects: &[Subject],
        interner: &Interner,
        spent: &mut Spent,
        is_quiet: bool,
    ) -> Result<Vec<Result<Outcome, CallFailure>>, CallFailure> {
        spent.calls += 1;
        let reads = &self.description.reads;
        let mut events = Vec::with_capacity(subjects.iter().map(|it| it.events.len()).sum());
        let uids: Vec<_> = subjects
            .iter()
            .map(|it| lower::Uids::of(it, reads))
            .collect();
        for (it, uids) in subjects.iter().zip(&uids) {
            events.extend(lower::events(it, uids, reads));
        }
        let contexts: Vec<_> = subjects
            .iter()
            .map(|it| lower::Context::of(it, reads))
            .collect();
        let mut rest = &*events;
        let lowered: Vec<_> = subjects
            .iter()
            .zip(uids.iter().zip(&contexts))
            .map(|(it, (uids, context))| {
                let (own, others) = rest.split_at(it.events.len());
                rest = others;
                lower::subject(it, uids, context, reads, own)
            })
            .collect();

        let fuel = self.fuel(subjects);
        let mut instance = Instance::new(&self.pre, &self.name, &self.limits, fuel)?;
        instance.store.data_mut().is_quiet = is_quiet;
        let outcomes = instance
            .classify(&self.settings, &lowered, spent)?
            .map_err(|message| CallFailure::new(Reason::GuestError, one_line(&message)))?;
        if outcomes.len() != subjects.len() {
            return Err(CallFailure::new(
                Reason::ContractViolation,
                format!(
                    "{} outcomes for {} subjects",
                    outcomes.len(),
                    subjects.len()
                ),
            ));
        }
        let outcomes = outcomes.into_iter().zip(subjects);
        Ok(outcomes
            .map(|(it, subject)| {
                lift::outcome(it, subject, &self.description, &self.limits, interner)
            })
            .collect())
    }

    /// The longest that a call with these subjects may take.
    #[must_use]
    pub fn deadline(&self, subjects: &[Subject]) -> Duration {
        Limits::deadline(self.fuel(subjects))
    }

    fn fuel(&self, subjects: &[Subject]) -> u64 {
        // A failed subject without an event is work too.
        self.limits
            .fuel(subjects.iter().map(|it| it.events.len().max(1)).sum())
    }
}

/// A text of a guest as part of a message: on one line, and not too long.
pub(super) fn one_line(text: &str) -> String {
    cut(&Visible(cut(text, 512)).to_string(), 512).to_owned()
}

/// Says what a guest did, from how its call ended.
fn failure(err: &wasmtime::Error, state: &State, fuel: u64) -> CallFailure {
    let root = one_line(&err.root_cause().to_string());
    let Some(trap) = err.downcast_ref::<Trap>() else {
        // wasmtime has no type for it, only this text.
        if root.contains("fuel allocated for hostcalls has been exhausted") {
            let limit = state.limits.lifted_bytes;
            let message = format!("handed back more than the limit lifted-bytes, {limit}");
            return CallFailure::new(Reason::OutputLimit, message);
        }
        return CallFailure::new(Reason::BadOutput, root);
    };
    let (reason, message) = match (trap, state.refused_memory, &state.panic) {
        (Trap::OutOfFuel, ..) => (Reason::OutOfFuel, format!("used up its fuel, {fuel} units")),
        (Trap::Interrupt, ..) => {
            let deadline = Limits::deadline(fuel).as_millis();
            (
                Reason::Deadline,
                format!("ran past its deadline of {deadline} ms"),
            )
        }
        (Trap::StackOverflow, ..) => (Reason::StackOverflow, "recursed too deeply".to_owned()),
        (_, Some(asked), _) => {
            let limit = state.limits.memory_bytes;
            let message = format!(
                "asked for {asked} bytes of memory, the limit memory-bytes is {limit}; then {root}"
            );
            (Reason::MemoryLimit, message)
        }
        (_, None, Some(panic)) => (Reason::Panic, panic.clone()),
        (..) => (Reason::Trap, root),
    };
    let frames = frames(err);
    let at = if frames.is_empty() {
        String::new()
    } else {
        format!(" in {}", frames.join(" < "))
    };
    CallFailure::new(reason, format!("{message}{at}"))
}

/// Frames of a backtrace that are shown.
const FRAMES_MAX: usize = 3;

/// What every panic of a Rust guest goes through, which says nothing of where it
/// began.
const MACHINERY: [&str; 5] = [
    "__rust",
    "rust_panic",
    "rust_begin_unwind",
    "::panicking::",
    "::panic_fmt",
];

/// The innermost functions of the guest when it trapped, by name where its name
/// section has them.
fn frames(err: &wasmtime::Error) -> Vec<String> {
    // Demangled names exist only in the text: `    0:   0x94e - guest.wasm!spin`.
    let text = format!("{err:?}");
    let frames = text.lines().filter_map(|line| {
        let (idx, rest) = line.trim_start().split_once(':')?;
        idx.parse::<u32>().ok()?;
        let (address, name) = rest.trim_start().split_once(" - ")?;
        let is_machinery = MACHINERY.iter().any(|it| name.contains(it));
        (address.starts_with("0x") && !is_machinery).then(|| one_line(cut(name, 120)))
    });
    frames.take(FRAMES_MAX).collect()
}
