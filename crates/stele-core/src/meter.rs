//! What a process counts about itself, for `/metrics`. Names and units: docs/METRICS.md.
//!
//! Statics, since a process has one set of them and nothing else hangs on them. Counting costs a few relaxed atomic
//! additions: no lock, no allocation. Labels are closed sets (patterns of routes, codes of errors), never ids or paths.
//! Own atomics rather than the `metrics` crate: its macros allocate a key a call where a label is not a literal, and
//! its Prometheus recorder brings twelve crates for what is a page of code here.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crate::models::ErrorClass;

/// Commits of the writer and how long each took, in microseconds.
pub static COMMITS: Histogram<10> =
    Histogram::new(&[200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 200_000, 1_000_000]);
/// How many commands were committed together.
pub static BATCHES: Histogram<9> = Histogram::new(&[1, 2, 4, 8, 16, 32, 64, 128, 256]);
/// Commands left waiting when the writer last took a batch.
pub static WRITE_QUEUE: Gauge = Gauge::new();
/// Pages in SQLite's write-ahead log after the last commit.
pub static WAL_PAGES: Gauge = Gauge::new();
/// Reads answered with a ready body.
pub static BODY_CACHE_HITS: Counter = Counter::new();
/// Reads that had to load the content though a ready body would have done.
pub static BODY_CACHE_MISSES: Counter = Counter::new();
/// Redactions answered.
pub static REDACTIONS: Counter = Counter::new();
/// Searches answered by words and nearness of meaning.
pub static SEARCHES_BLENDED: Counter = Counter::new();
/// Searches answered by words alone.
pub static SEARCHES_BY_WORDS: Counter = Counter::new();
/// Calls of the embedding model, by [`EmbeddingResult`].
pub static EMBEDDING_CALLS: [Counter; EmbeddingResult::ALL.len()] =
    [const { Counter::new() }; EmbeddingResult::ALL.len()];
/// Refused requests by the code of the error.
pub static REFUSALS: Table<Counter, 128> = Table::new();

/// How a call of the embedding model ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbeddingResult {
    /// With vectors.
    Ok,
    /// It took too long.
    Timeout,
    /// Out of reach, or it answered that it cannot at the moment or does not know the caller.
    Unavailable,
    /// It does not take the text.
    Refused,
    /// What came are no vectors, or not those asked for.
    Unusable,
}

impl EmbeddingResult {
    /// All of them with the label of each, in the order of [`EMBEDDING_CALLS`].
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::Ok, "ok"),
        (Self::Timeout, "timeout"),
        (Self::Unavailable, "unavailable"),
        (Self::Refused, "refused"),
        (Self::Unusable, "unusable"),
    ];

    /// Counts a call that ended so.
    pub fn count(self) {
        EMBEDDING_CALLS[self as usize].count();
    }
}

/// Calls of models by provider.
pub static MODELS: Table<Box<ModelMeter>, 64> = Table::new();

/// What is counted about a provider of models.
#[derive(Debug)]
pub struct ModelMeter {
    /// Calls that were answered.
    pub answered: Counter,
    failed: [Counter; 3],
    /// Calls that were not made, since the provider rested.
    pub resting: Counter,
    /// Tries beyond the first of a call.
    pub retries: Counter,
    /// Tokens that models read.
    pub input_tokens: Counter,
    /// Tokens that models wrote.
    pub output_tokens: Counter,
    /// The time for a call with all its tries and waits, in microseconds.
    pub durations: Histogram<9>,
}

impl ModelMeter {
    /// Zeros.
    pub fn boxed() -> Box<Self> {
        const BOUNDS: &[u64; 9] = &[
            100_000,
            250_000,
            500_000,
            1_000_000,
            2_500_000,
            5_000_000,
            15_000_000,
            60_000_000,
            120_000_000,
        ];
        Box::new(Self {
            answered: Counter::new(),
            failed: [const { Counter::new() }; 3],
            resting: Counter::new(),
            retries: Counter::new(),
            input_tokens: Counter::new(),
            output_tokens: Counter::new(),
            durations: Histogram::new(BOUNDS),
        })
    }

    /// Calls that failed for good in this way.
    pub fn failed(&self, class: ErrorClass) -> &Counter {
        match class {
            ErrorClass::RateLimited => &self.failed[0],
            ErrorClass::Timeout => &self.failed[1],
            ErrorClass::Error => &self.failed[2],
        }
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Zero.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds one.
    pub fn count(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    /// Adds so many.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Zero.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }

    /// What it was last set to.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// How often values fell below each bound, in the bounds' unit.
#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: &'static [u64; N],
    buckets: [AtomicU64; N],
    above: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    /// Empty, with ascending upper bounds.
    pub const fn new(bounds: &'static [u64; N]) -> Self {
        Self {
            bounds,
            buckets: [const { AtomicU64::new(0) }; N],
            above: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }

    /// Counts a value.
    pub fn record(&self, value: u64) {
        let at = self.bounds.iter().position(|bound| value <= *bound);
        at.map_or(&self.above, |at| &self.buckets[at]).fetch_add(1, Relaxed);
        self.sum.fetch_add(value, Relaxed);
    }

    /// Counts a time in microseconds.
    pub fn record_micros(&self, time: Duration) {
        self.record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Each bound with the number of values at or below it.
    pub fn cumulative(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bounds.iter().zip(&self.buckets).scan(0, |below, (bound, count)| {
            *below += count.load(Relaxed);
            Some((*bound, *below))
        })
    }

    /// How many values there were.
    pub fn total(&self) -> u64 {
        self.buckets.iter().chain([&self.above]).map(|count| count.load(Relaxed)).sum()
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum.load(Relaxed)
    }
}

/// Values by label: a table that only grows and is read without locks. What finds no room is left out.
#[derive(Debug)]
pub struct Table<T, const SLOTS: usize> {
    slots: [OnceLock<(Box<str>, T)>; SLOTS],
}

impl<T, const SLOTS: usize> Table<T, SLOTS> {
    /// Empty.
    #[expect(clippy::new_without_default, reason = "only ever a static")]
    pub const fn new() -> Self {
        Self { slots: [const { OnceLock::new() }; SLOTS] }
    }

    /// The value of `label`, made by `make` when it is first asked for.
    pub fn of(&self, label: &str, make: impl Fn() -> T) -> Option<&T> {
        let start = fnv(label) % SLOTS;
        let probes = self.slots[start..].iter().chain(&self.slots[..start]);
        for slot in probes {
            let (there, value) = slot.get_or_init(|| (label.into(), make()));
            if &**there == label {
                return Some(value);
            }
        }
        None
    }

    /// All labels with their values, sorted.
    pub fn all(&self) -> Vec<(&str, &T)> {
        let mut all: Vec<_> =
            self.slots.iter().filter_map(OnceLock::get).map(|(label, value)| (&**label, value)).collect();
        all.sort_by_key(|(label, _)| *label);
        all
    }
}

fn fnv(text: &str) -> usize {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 16) as usize
}

/// Counts a refused request by the code of its error.
pub fn refused(code: &'static str) {
    if let Some(counter) = REFUSALS.of(code, Counter::new) {
        counter.count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_at_and_below_each_bound() {
        let histogram = Histogram::new(&[1, 10]);
        for value in [0, 1, 2, 10, 11] {
            histogram.record(value);
        }
        assert_eq!(histogram.cumulative().collect::<Vec<_>>(), [(1, 2), (10, 4)]);
        assert_eq!((histogram.total(), histogram.sum()), (5, 24));
    }

    #[test]
    fn a_table_keeps_its_labels_apart_and_leaves_out_what_finds_no_room() {
        let table: Table<Counter, 4> = Table::new();
        for label in ["a", "b", "c", "d", "a", "e"] {
            if let Some(counter) = table.of(label, Counter::new) {
                counter.count();
            }
        }
        let counts: Vec<_> = table.all().into_iter().map(|(label, count)| (label, count.get())).collect();
        assert_eq!(counts, [("a", 2), ("b", 1), ("c", 1), ("d", 1)]);
    }
}
