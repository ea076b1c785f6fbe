//! Contents at rest: plain, or zstd where that pays. Every back end stores the same bytes, so that a copy from one
//! to another moves them as they are.

use std::cell::RefCell;

use bytes::Bytes;
use stele_core::hash::Sha256;
use stele_core::text::Content;
use zstd::bulk::{Compressor, Decompressor};

mod tags;

pub use tags::{decode_tags, encode_tags};

/// Whether contents are compressed at rest. `Off` lets an operator search the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// zstd, where it pays.
    #[default]
    On,
    /// Plain bytes.
    Off,
}

/// Shorter contents are kept plain: a frame's overhead eats the gain.
const WORTH_BYTES: usize = 256;
/// Longer contents are compressed on a blocking thread: 100 kB take 0.6 ms.
pub const LARGE_BYTES: usize = 16 * 1024;
const LEVEL: i32 = 3;

const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
}

/// A content as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// 0 plain, 1 zstd.
    pub encoding: u8,
    /// The bytes.
    pub bytes: Bytes,
}

/// The stored form of a content. Takes time in proportion to its size, so not for the writer thread.
pub fn encode(content: &Content, compression: Compression) -> Encoded {
    encode_bytes(content.bytes(), compression)
}

/// The stored form of a content that was parsed before.
pub fn encode_bytes(plain: &Bytes, compression: Compression) -> Encoded {
    let squeezed = (compression == Compression::On && plain.len() >= WORTH_BYTES).then(|| {
        COMPRESSOR.with_borrow_mut(|compressor| compressor.as_mut().and_then(|c| c.compress(plain).ok()))
    });
    match squeezed.flatten() {
        Some(bytes) if bytes.len() * 10 < plain.len() * 9 => Encoded { encoding: ZSTD, bytes: bytes.into() },
        _ => Encoded { encoding: PLAIN, bytes: plain.clone() },
    }
}

/// The content in a row: its bytes, if they are what the row says they are.
pub fn decode(encoding: u8, stored: &[u8], size: u64, sha256: Sha256) -> Option<Bytes> {
    let size = usize::try_from(size).ok()?;
    let bytes = match encoding {
        PLAIN => Bytes::copy_from_slice(stored),
        // The exact size: a buffer for the largest content would cost more in page faults than the unpacking.
        ZSTD => DECOMPRESSOR
            .with_borrow_mut(|decompressor| {
                decompressor.as_mut().and_then(|d| d.decompress(stored, size).ok())
            })?
            .into(),
        _ => return None,
    };
    (bytes.len() == size && Sha256::of(&bytes) == sha256).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(content: &Content, encoded: &Encoded) -> Option<Bytes> {
        decode(encoded.encoding, &encoded.bytes, content.size_bytes(), content.sha256())
    }

    #[test]
    fn every_content_comes_back_and_long_ones_are_smaller() {
        for text in ["", "short", &"repeat me ".repeat(1000), &"é🧠\r\n".repeat(7)] {
            let content = Content::parse(text, 102_400).expect("legal");
            let encoded = encode(&content, Compression::On);
            assert_eq!(back(&content, &encoded).as_deref(), Some(text.as_bytes()));
            assert_eq!(encode(&content, Compression::Off).encoding, PLAIN);
        }
        let long = Content::parse("repeat me ".repeat(1000), 102_400).expect("legal");
        assert!(encode(&long, Compression::On).bytes.len() < 1000);
    }

    #[test]
    fn damaged_bytes_are_noticed() {
        let content = Content::parse("repeat me ".repeat(100), 102_400).expect("legal");
        for compression in [Compression::On, Compression::Off] {
            let mut encoded = encode(&content, compression);
            let mut bytes = encoded.bytes.to_vec();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            encoded.bytes = bytes.into();
            assert_eq!(back(&content, &encoded), None);
        }
    }
}
