//! SHA-256 of contents: of the bytes as sent, nothing normalized. DESIGN 4.

use std::fmt;

use sha2::Digest;

/// A SHA-256 value; shown and read as 64 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sha256([u8; 32]);

/// A text that is not 64 lowercase hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a SHA-256 as 64 lowercase hex digits")]
pub struct HashError;

impl Sha256 {
    /// The hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(sha2::Sha256::digest(bytes).into())
    }

    /// The hash of all that `reader` gives.
    ///
    /// # Errors
    /// The reader's.
    pub fn of_all(mut reader: impl std::io::Read) -> std::io::Result<Self> {
        let (mut digest, mut buffer) = (sha2::Sha256::new(), vec![0; 1 << 20]);
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(Self(digest.finalize().into())),
                n => digest.update(&buffer[..n]),
            }
        }
    }

    /// The hash with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes, as stored.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 lowercase hex digits.
    ///
    /// # Errors
    /// Anything else, upper case included: spec/anthropic.md 3.6.
    pub fn parse(text: &str) -> Result<Self, HashError> {
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| HashError)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (hex_digit(pair[0])? << 4) | hex_digit(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn hex_digit(digit: u8) -> Result<u8, HashError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(HashError),
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).expect("hex digits are ASCII"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_nothing_is_the_known_one() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256::of(b"").to_string(), empty);
        assert_eq!(Sha256::parse(empty), Ok(Sha256::of(b"")));
    }

    #[test]
    fn other_spellings_are_refused() {
        let good = Sha256::of(b"x").to_string();
        for bad in [&good.to_uppercase(), &good[1..], &format!("{good}0"), "", &format!("g{}", &good[1..])] {
            assert_eq!(Sha256::parse(bad), Err(HashError), "{bad}");
        }
    }
}
