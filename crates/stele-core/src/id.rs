//! Ids: 128-bit UUIDv7 values, one newtype per kind of thing. DESIGN 4.
//!
//! The database holds the 16 bytes; each dialect has its own reversible spelling of them.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Timestamp;

/// Builds the 16 bytes of a UUIDv7 whose order is the order of `at` down to the microsecond.
///
/// The 12 bits after the milliseconds carry the microsecond within the millisecond (scaled to 4,096), so that
/// two ids minted at different microseconds sort like their times; `random` fills the remaining 62 bits.
fn uuid_v7(at: Timestamp, random: u64) -> [u8; 16] {
    let micros = u128::try_from(at.as_micros()).unwrap_or(0);
    let millis = (micros / 1000) & 0xFFFF_FFFF_FFFF;
    let fraction = (micros % 1000) * 4096 / 1000;
    let value = (millis << 80)
        | (0x7 << 76)
        | (fraction << 64)
        | (0b10 << 62)
        | u128::from(random & 0x3FFF_FFFF_FFFF_FFFF);
    value.to_be_bytes()
}

/// The time in a UUIDv7 made by [`uuid_v7`].
fn minted_at(id: [u8; 16]) -> Timestamp {
    let value = u128::from_be_bytes(id);
    let millis = value >> 80;
    // The fraction was cut off when it was scaled, so the way back rounds up.
    let fraction = ((value >> 64) & 0xFFF) * 1000;
    let micros = millis * 1000 + fraction.div_ceil(4096);
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// A new id whose order is that of `at`; `random` makes it unique.
            pub fn mint(at: Timestamp, random: u64) -> Self {
                Self(uuid_v7(at, random))
            }

            /// The time that it was minted at, to the microsecond.
            pub fn minted_at(&self) -> Timestamp {
                minted_at(self.0)
            }

            /// The id with these 16 big-endian bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The 16 big-endian bytes, as stored.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }

            /// Reads the canonical lowercase hyphenated spelling and no other.
            pub fn parse(text: &str) -> Option<Self> {
                let id = Self(*uuid::Uuid::try_parse(text).ok()?.as_bytes());
                (text == id.to_string()).then_some(id)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(uuid::Uuid::from_bytes_ref(&self.0).as_hyphenated(), f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| D::Error::custom("not an id"))
            }
        }
    };
}

id!(
    /// The tenant that owns workspaces; one an installation.
    OrganizationId
);
id!(
    /// The scope that stores and keys belong to. Recursion calls it an organization.
    WorkspaceId
);
id!(
    /// A memory store.
    StoreId
);
id!(
    /// A memory; survives renames and a restore after deletion.
    MemoryId
);
id!(
    /// One entry of a store's history.
    VersionId
);
id!(
    /// An API key (not its secret).
    KeyId
);
id!(
    /// An agent.
    AgentId
);
id!(
    /// One version of an agent's definition.
    AgentVersionId
);
id!(
    /// An environment.
    EnvironmentId
);
id!(
    /// The key of an environment (not its secret).
    EnvironmentKeyId
);
id!(
    /// A session.
    SessionId
);
id!(
    /// An event of a session.
    EventId
);
id!(
    /// A file or repository of a session.
    ResourceId
);
id!(
    /// A token of a session (not its secret).
    SessionTokenId
);
id!(
    /// One stay of a session in its environment's work queue.
    WorkItemId
);
id!(
    /// An automation.
    AutomationId
);
id!(
    /// One run of an automation.
    RunId
);
id!(
    /// A trigger of an automation, as who defined it named it.
    TriggerId
);
id!(
    /// A person who uses the console.
    UserId
);
id!(
    /// One stay of a person in the console, from signing in to signing out.
    ConsoleSessionId
);
id!(
    /// A workload identity.
    ServiceAccountId
);
id!(
    /// A life of the database, begun by its making or by a restore: sequences of one say nothing in another. DESIGN 7.
    Epoch
);
id!(
    /// A backup.
    BackupId
);
id!(
    /// One HTTP request.
    RequestId
);

const ALPHABET: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// Base58 digits of 128 bits.
const DIGITS: usize = 22;

/// 16 bytes as 22 base58 characters, padded with `1`. DESIGN 4, spec/recursion.md 16.1.
pub fn base58(bytes: [u8; 16]) -> String {
    let mut number = u128::from_be_bytes(bytes);
    let mut text = [b'1'; DIGITS];
    for digit in text.iter_mut().rev() {
        *digit = ALPHABET[(number % 58) as usize];
        number /= 58;
    }
    text.iter().map(|digit| char::from(*digit)).collect()
}

/// The 16 bytes of 22 base58 characters; `None` for anything else.
pub fn from_base58(text: &str) -> Option<[u8; 16]> {
    if text.len() != DIGITS {
        return None;
    }
    let number = text.bytes().try_fold(0u128, |number, digit| {
        let value = ALPHABET.iter().position(|d| *d == digit)?;
        number.checked_mul(58)?.checked_add(value as u128)
    })?;
    Some(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_sort_like_their_microseconds(a in 0i64..4_000_000_000_000_000, step in 1i64..5_000, r in any::<u64>(), s in any::<u64>()) {
            let first = MemoryId::mint(Timestamp::from_micros(a), r);
            let second = MemoryId::mint(Timestamp::from_micros(a + step), s);
            prop_assert!(first < second);
        }

        #[test]
        fn an_id_tells_when_it_was_minted(at in 0i64..4_000_000_000_000_000, r in any::<u64>()) {
            let at = Timestamp::from_micros(at);
            prop_assert_eq!(EventId::mint(at, r).minted_at(), at);
        }

        #[test]
        fn the_canonical_spelling_reads_back(bytes in any::<[u8; 16]>()) {
            let id = StoreId::from_bytes(bytes);
            prop_assert_eq!(StoreId::parse(&id.to_string()), Some(id));
        }
    }

    #[test]
    fn only_the_canonical_spelling_is_read() {
        let id = StoreId::from_bytes([0xAB; 16]);
        let text = id.to_string();
        assert_eq!(StoreId::parse(&text.to_uppercase()), None);
        assert_eq!(StoreId::parse(&text.replace('-', "")), None);
        assert_eq!(StoreId::parse(&format!("{{{text}}}")), None);
        let minted = StoreId::mint(Timestamp::from_micros(1), 2).to_string();
        assert_eq!(minted.as_bytes()[14], b'7');
    }

    #[test]
    fn every_128_bits_read_back_and_nothing_else_does() {
        for bytes in [[0; 16], [255; 16], *b"0123456789abcdef"] {
            assert_eq!(from_base58(&base58(bytes)), Some(bytes));
        }
        assert_eq!(base58([0; 16]), "1".repeat(22));
        for bad in ["", "1", &"z".repeat(22), &"0".repeat(22), &"1".repeat(23), "lllllllllllllllllllll"] {
            assert_eq!(from_base58(bad), None, "{bad}");
        }
    }
}
