//! How long to wait after a failure.

use std::time::Duration;

/// Where it begins, as client-go's reflector does.
const BASE: Duration = Duration::from_millis(800);

/// So that no streak of small random numbers makes a hot loop.
const AT_LEAST: Duration = Duration::from_millis(50);

/// A bound that doubles with every failure, and a random wait below it: many
/// replicas that lost one server must not come back all at once.
#[derive(Debug)]
pub(super) struct Backoff {
    max: Duration,
    n_failures: u32,
    random: fastrand::Rng,
}

impl Backoff {
    pub(super) fn new(max: Duration, random: fastrand::Rng) -> Self {
        Self {
            max,
            n_failures: 0,
            random,
        }
    }

    /// The next wait. What the server asks for counts, up to our own bound: a
    /// `Retry-After` of a day must not make us blind for a day.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Duration {
        let bound = BASE
            .saturating_mul(1 << self.n_failures.min(16))
            .min(self.max);
        self.n_failures = self.n_failures.saturating_add(1);
        let random = bound.mul_f64(self.random.f64()).max(AT_LEAST);
        match asked {
            Some(asked) => random.max(asked.min(self.max)),
            None => random,
        }
    }

    /// Real progress was made: the next failure is a first one again.
    pub(super) fn reset(&mut self) {
        self.n_failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: Duration = Duration::from_secs(30);

    fn backoff() -> Backoff {
        Backoff::new(MAX, fastrand::Rng::with_seed(7))
    }

    #[test]
    fn the_bound_doubles_up_to_the_maximum_and_a_success_resets_it() {
        let longest = |n_failures| {
            let waits = (0..200).map(|seed| {
                let mut it = Backoff::new(MAX, fastrand::Rng::with_seed(seed));
                it.n_failures = n_failures;
                it.next(None)
            });
            waits.max().unwrap()
        };
        for (n_failures, bound) in [(0, 0.8), (1, 1.6), (4, 12.8), (6, 30.0), (4_000_000, 30.0)] {
            let longest = longest(n_failures).as_secs_f64();
            assert!(
                bound * 0.9 < longest && longest <= bound,
                "{n_failures} failures: {longest} s"
            );
        }
        let mut it = backoff();
        for _ in 0..20 {
            it.next(None);
        }
        it.reset();
        assert!(it.next(None) <= BASE);
    }

    #[test]
    fn what_the_server_asks_for_is_heeded_up_to_our_own_bound() {
        let mut it = backoff();
        assert!(Duration::from_secs(7) <= it.next(Some(Duration::from_secs(7))));
        assert_eq!(it.next(Some(Duration::from_hours(24))), MAX);
    }

    #[test]
    fn no_wait_is_nothing() {
        let mut it = backoff();
        assert!((0..1_000).all(|_| {
            it.reset();
            AT_LEAST <= it.next(None)
        }));
    }
}
