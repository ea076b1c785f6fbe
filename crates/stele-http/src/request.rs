//! Request ids: made once a request, in a header of every answer and in every error.

use std::fmt;

use stele_core::id::RequestId as Id;
use stele_core::service::Stele;

/// The id of one request: `req_01` and 22 base58 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    /// A new one.
    pub fn mint(stele: &Stele) -> Self {
        let id = Id::mint(stele.now(), stele.random_bits());
        Self(format!("req_01{}", base58(*id.as_bytes())))
    }

    /// Its spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

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
