//! Memories of about 2 kB with word frequencies like prose, from a seed.

const WORDS: &str = "the of and to in is that for it as with on be this by from at or an are not have was which but \
    when if can all their has will one may use time memory agent session store version path note deploy build test \
    error server client user team review release policy customer order refund ticket payment timeout retry cache \
    index query table schema migration branch commit merge conflict token secret key role access read write update \
    delete history restore redact archive friday monday checklist runbook incident latency throughput budget limit";

/// A small generator of pseudo-random numbers: the same seed gives the same run.
#[derive(Clone)]
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A text of about 2 kB; no quote or backslash in it, so that it is JSON as it stands.
    fn text(&mut self) -> String {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let mut text = String::with_capacity(2_100);
        while text.len() < 2_000 {
            // Squaring prefers the early, frequent words.
            let pick = self.below(words.len()) * self.below(words.len()) / words.len();
            text.push_str(words[pick]);
            let end = if self.below(12) == 0 { format!(" {}. ", self.below(10_000)) } else { " ".into() };
            text.push_str(&end);
        }
        text
    }
}

/// Ready texts, so that making them costs the load generator nothing.
#[derive(Clone)]
pub(crate) struct Texts(std::sync::Arc<Vec<String>>);

impl Texts {
    pub(crate) fn new(seed: u64) -> Self {
        let mut seeded = Seeded::new(seed);
        Self(std::sync::Arc::new((0..1_024).map(|_| seeded.text()).collect()))
    }

    pub(crate) fn pick(&self, seeded: &mut Seeded) -> &str {
        &self.0[seeded.below(self.0.len())]
    }
}
