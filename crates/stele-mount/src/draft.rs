//! What is written to a file and not committed yet.

use fuser::Errno;
use stele_core::hash::Sha256;
use stele_core::limits::Limits;

use crate::tree::Head;

/// What a draft is of the text that it began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing: the file is new, or was cut to nothing. It replaces whatever text is there.
    Whole,
    /// All of it, with more behind: `bytes[from..]` can be put behind any other text.
    Append {
        /// Where what was appended begins.
        from: usize,
    },
    /// It with changes inside: good for no other text.
    Patch,
}

/// The text of a file as those who write it see it.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) bytes: Vec<u8>,
    pub(crate) shape: Shape,
    /// How many changes had been made elsewhere when it was begun.
    pub(crate) foreign: u64,
    /// The text that the bytes were made from.
    pub(crate) base: Option<Sha256>,
    /// Moves on with every change, so that a commit knows whether there was another meanwhile.
    pub(crate) edition: u64,
}

impl Draft {
    /// A draft that replaces the text of `head`, or the first of a new file.
    pub(crate) fn whole(head: Option<&Head>, foreign: u64) -> Self {
        let base = head.map(|head| head.hash);
        Self { bytes: Vec::new(), shape: Shape::Whole, foreign, base, edition: 0 }
    }

    /// A draft over the text of `head`, with no change in it yet.
    pub(crate) fn over(head: Option<&Head>, text: &[u8], foreign: u64) -> Self {
        let base = head.map(|head| head.hash);
        let shape = Shape::Append { from: text.len() };
        Self { bytes: text.to_vec(), shape, foreign, base, edition: 0 }
    }

    /// Puts `data` behind the text.
    ///
    /// # Errors
    /// EFBIG beyond `most` bytes.
    pub(crate) fn append(&mut self, data: &[u8], most: usize) -> Result<(), Errno> {
        within(self.bytes.len(), data.len(), most)?;
        self.bytes.extend_from_slice(data);
        self.edition += 1;
        Ok(())
    }

    /// Puts `data` where it belongs.
    ///
    /// # Errors
    /// EFBIG beyond `most` bytes.
    pub(crate) fn write(&mut self, offset: u64, data: &[u8], most: usize) -> Result<(), Errno> {
        let offset = usize::try_from(offset).map_err(|_| Errno::EFBIG)?;
        let end = within(offset, data.len(), most)?;
        self.patched();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(data);
        Ok(())
    }

    /// Cuts the text, or fills it up with NULs.
    ///
    /// # Errors
    /// EFBIG beyond `most` bytes.
    pub(crate) fn resize(&mut self, size: u64, most: usize) -> Result<(), Errno> {
        let size = usize::try_from(size).map_err(|_| Errno::EFBIG)?;
        within(size, 0, most)?;
        self.patched();
        self.bytes.resize(size, 0);
        if size == 0 {
            self.shape = Shape::Whole;
        }
        Ok(())
    }

    /// Makes what was appended an appendix to the text of `head`.
    ///
    /// # Errors
    /// EFBIG beyond the cap of a memory.
    pub(crate) fn rebase(&mut self, from: usize, head: &Head, text: &[u8]) -> Result<(), Errno> {
        let tail = self.bytes.split_off(from.min(self.bytes.len()));
        within(text.len(), tail.len(), most_bytes())?;
        self.bytes = [text, &tail].concat();
        self.shape = Shape::Append { from: text.len() };
        self.base = Some(head.hash);
        self.edition += 1;
        Ok(())
    }

    fn patched(&mut self) {
        self.edition += 1;
        if !matches!(self.shape, Shape::Whole) {
            self.shape = Shape::Patch;
        }
    }
}

fn within(offset: usize, more: usize, most: usize) -> Result<usize, Errno> {
    offset.checked_add(more).filter(|end| *end <= most).ok_or(Errno::EFBIG)
}

/// Most bytes of a memory. spec/anthropic.md 3.4.
pub(crate) fn most_bytes() -> usize {
    Limits::default().content_bytes
}

/// Whether bytes that were written can be part of a text, as far as they alone can tell: a character may have begun
/// before them, and one may end behind them.
///
/// # Errors
/// EILSEQ where they cannot.
pub(crate) fn check_written(data: &[u8]) -> Result<(), Errno> {
    if data.contains(&0) {
        return Err(Errno::EILSEQ);
    }
    let rest = data.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    match std::str::from_utf8(&data[rest..]) {
        Err(error) if error.error_len().is_some() => Err(Errno::EILSEQ),
        _ => Ok(()),
    }
}

/// The text that bytes are.
///
/// # Errors
/// EILSEQ where they are none.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Errno> {
    let text = std::str::from_utf8(bytes).map_err(|_| Errno::EILSEQ)?;
    if text.contains('\0') { Err(Errno::EILSEQ) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use stele_core::id::VersionId;

    use super::*;

    fn head(text: &str, n: u8) -> Head {
        Head {
            version: VersionId::from_bytes([n; 16]),
            hash: Sha256::of(text.as_bytes()),
            size: text.len() as u64,
            mtime: SystemTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn what_was_only_appended_goes_behind_any_text() {
        let mut draft = Draft::over(Some(&head("one\n", 1)), b"one\n", 0);
        draft.append(b"two\n", most_bytes()).expect("small");
        let Shape::Append { from } = draft.shape else { panic!("no appendix") };
        draft.rebase(from, &head("one\nother\n", 2), b"one\nother\n").expect("small");
        assert_eq!(draft.bytes, b"one\nother\ntwo\n");
        draft.write(0, b"O", most_bytes()).expect("small");
        assert_eq!(draft.shape, Shape::Patch);
        draft.resize(0, most_bytes()).expect("small");
        assert_eq!(draft.shape, Shape::Whole);
        draft.append(b"x", most_bytes()).expect("small");
        assert_eq!((draft.shape, draft.bytes), (Shape::Whole, b"x".to_vec()));
    }

    #[test]
    fn the_size_limit_is_exact() {
        let mut draft = Draft::whole(None, 0);
        let most = most_bytes();
        assert_eq!(most, 102_400);
        draft.append(&vec![b'x'; most], most).expect("exactly the limit");
        assert_eq!(draft.append(b"y", most).expect_err("over").code(), Errno::EFBIG.code());
        assert_eq!(draft.write(most as u64, b"y", most).expect_err("over").code(), Errno::EFBIG.code());
        assert_eq!(draft.resize(most as u64 + 1, most).expect_err("over").code(), Errno::EFBIG.code());
        assert_eq!(draft.write(u64::MAX, b"y", most).expect_err("over").code(), Errno::EFBIG.code());
        assert_eq!(draft.bytes.len(), most);
    }

    #[test]
    fn a_character_may_be_split_over_writes_but_not_broken_in_one() {
        for fine in ["abc", "\u{e9}", "\u{1f600}"] {
            for cut in 0..=fine.len() {
                assert!(
                    check_written(&fine.as_bytes()[..cut]).is_ok()
                        && check_written(&fine.as_bytes()[cut..]).is_ok()
                );
            }
        }
        for bad in [&b"a\0b"[..], b"\xe9t", b"\xff", b"a\x80", b"\x80\x80\x80\x80"] {
            assert!(check_written(bad).is_err(), "{bad:?}");
        }
        assert!(text(b"abc\xc3").is_err() && text(b"a\0").is_err() && text("\u{e9}".as_bytes()).is_ok());
    }
}
