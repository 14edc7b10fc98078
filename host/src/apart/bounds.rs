//! What a child is told before anything else, and how it binds itself to it.
//!
//! It binds itself, since what a parent could do between the two halves of starting a process takes
//! unsafe code. It comes before the first byte that may be hostile, and a child that cannot be bound
//! does nothing.

use std::{io::Read, process, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit};

use super::{Bounds, Failure};

/// What stands before the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    memory_bytes: u64,
    seconds: u64,
    /// Who asks.
    parent: u64,
    /// Bytes of the input.
    n_bytes: u64,
}

/// Bytes of an order.
const ORDER_BYTES: usize = 32;

/// Bytes of the stack, as most systems have it anyway. Memory that is bounded does not include it.
const STACK_BYTES: u64 = 8 << 20;

/// How much later than others a child is: half of the way to the very last.
const NICE: i32 = 10;

impl Order {
    /// For a child of this process.
    pub(super) fn new(bounds: Bounds, n_bytes: usize) -> Self {
        let Bounds { memory_bytes, time } = bounds;
        let number = |it: usize| u64::try_from(it).unwrap_or(u64::MAX);
        Self {
            memory_bytes: number(memory_bytes),
            // One thread has no more processor time than goes by on the wall. So this one only
            // ends a child whose parent does not.
            seconds: time.saturating_add(Duration::from_secs(1)).as_secs(),
            parent: process::id().into(),
            n_bytes: number(n_bytes),
        }
    }

    fn numbers(self) -> [u64; ORDER_BYTES / 8] {
        let Self {
            memory_bytes,
            seconds,
            parent,
            n_bytes,
        } = self;
        [memory_bytes, seconds, parent, n_bytes]
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let numbers = self.numbers().into_iter();
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    pub(super) fn read(from: &mut impl Read) -> Result<Self, Failure> {
        let mut numbers = [0; ORDER_BYTES / 8];
        for it in &mut numbers {
            let mut bytes = [0; 8];
            from.read_exact(&mut bytes)?;
            *it = u64::from_le_bytes(bytes);
        }
        let [memory_bytes, seconds, parent, n_bytes] = numbers;
        Ok(Self {
            memory_bytes,
            seconds,
            parent,
            n_bytes,
        })
    }

    /// Binds this process.
    pub(super) fn obey(self) -> Result<(), Failure> {
        self.end_with_parent()?;
        // Not the address space: what is reserved and never written costs nothing, and how much of
        // that there is depends on the C library.
        limit(Resource::Data, self.memory_bytes, self.memory_bytes)?;
        // At the first a signal that is told apart, at the second the end.
        limit(Resource::Cpu, self.seconds, self.seconds.saturating_add(1))?;
        limit(Resource::Stack, STACK_BYTES, STACK_BYTES)?;
        limit(Resource::Core, 0, 0)?;
        // Without it the bounds hold as well.
        nice(NICE).ok();
        go_first_when_memory_ends();
        leave_no_dump();
        Ok(())
    }

    #[cfg(target_os = "linux")]
    fn end_with_parent(self) -> Result<(), Failure> {
        use rustix::process::{Signal, getppid};

        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|err| Failure::NotRun(format!("it would outlive its parent: {err}")))?;
        // It may have ended before.
        let parent = getppid().and_then(|it| u64::try_from(it.as_raw_nonzero().get()).ok());
        if parent != Some(self.parent) {
            return Err(Failure::NotRun("its parent is gone".to_owned()));
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
    fn end_with_parent(self) -> Result<(), Failure> {
        Ok(())
    }

    /// Reads the input, all of it.
    pub(super) fn input(self, from: &mut impl Read) -> Result<Vec<u8>, Failure> {
        let n_bytes = usize::try_from(self.n_bytes).map_err(|_| Failure::Memory)?;
        let mut input = Vec::new();
        input
            .try_reserve_exact(n_bytes)
            .map_err(|_| Failure::Memory)?;
        from.take(self.n_bytes).read_to_end(&mut input)?;
        if input.len() < n_bytes {
            return Err(Failure::NotRun("its input was cut off".to_owned()));
        }
        Ok(input)
    }
}

/// Limits what this process may use; a lower limit that there is stays.
fn limit(resource: Resource, soft: u64, hard: u64) -> Result<(), Failure> {
    let lower = |wanted: u64, there: Option<u64>| Some(there.map_or(wanted, |it| it.min(wanted)));
    let there = getrlimit(resource);
    let limit = Rlimit {
        current: lower(soft, there.maximum),
        maximum: lower(hard, there.maximum),
    };
    setrlimit(resource, limit)
        .map_err(|err| Failure::NotRun(format!("{resource:?} cannot be limited: {err}")))
}

/// When the machine, or the pod, has no memory left, this is who has to go. Where that takes all of
/// the pod nothing can be done about it.
fn go_first_when_memory_ends() {
    #[cfg(target_os = "linux")]
    std::fs::write("/proc/self/oom_score_adj", "1000").ok();
}

/// A program that takes dumps is not held off by their size being limited to none. It comes last:
/// what cannot be dumped may not write to its own files in `/proc`.
fn leave_no_dump() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        set_dumpable_behavior(DumpableBehavior::NotDumpable).ok();
    }
}
