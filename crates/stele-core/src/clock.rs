//! Time and randomness as ports, so that tests own both.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::time::Timestamp;

/// Where the present comes from.
pub trait Clock: Send + Sync + 'static {
    /// The present. May jump either way; what must increase is made to increase where it is minted.
    fn now(&self) -> Timestamp;
}

/// Where randomness comes from.
pub trait Random: Send + Sync + 'static {
    /// Fills `bytes` with unpredictable bytes.
    fn fill(&self, bytes: &mut [u8]);

    /// 64 unpredictable bits.
    fn bits(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_be_bytes(bytes)
    }
}

/// The operating system's clock and randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Clock for System {
    #[expect(clippy::disallowed_methods, reason = "this is the Clock that others are told to use")]
    fn now(&self) -> Timestamp {
        let micros = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(_) => 0,
        };
        Timestamp::from_micros(micros)
    }
}

impl Random for System {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system hands out random bytes");
    }
}
