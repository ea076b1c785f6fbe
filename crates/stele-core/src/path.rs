//! Paths of memories and prefixes of lists. spec/anthropic.md 3.3 and 3.7, spec/recursion.md 6.6.

use std::fmt;

use unicode_normalization::is_nfc;
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// Longest path, in UTF-8 bytes.
pub const MAX_PATH_BYTES: usize = 1024;
/// Most segments of a path.
pub const MAX_SEGMENTS: usize = 20;

/// The path of a memory: `/a/b.md`. Parsing is the only way to one; after it nobody checks again.
///
/// Absolute, 1 to 20 segments, none empty, `.` or `..`; no control or format characters, no U+2028 or U+2029;
/// Unicode NFC; at most 1,024 bytes. Compared and ordered by bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MemoryPath(Box<str>);

/// What is wrong with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It is empty or does not start with `/`.
    #[error("must start with /")]
    NotAbsolute,
    /// `//`, a trailing `/`, or `/` alone.
    #[error("must not have an empty segment (no //, no trailing /, not / alone)")]
    EmptySegment,
    /// A `.` or `..` segment.
    #[error("must not have a . or .. segment")]
    DotSegment,
    /// A control or format character, U+2028 or U+2029.
    #[error("must not hold the character U+{:04X} (control, format and line separator characters are refused)", u32::from(*.0))]
    ForbiddenCharacter(char),
    /// It is not in Unicode normalization form C.
    #[error("must be in Unicode normalization form C (NFC)")]
    NotNfc,
    /// More than 1,024 bytes.
    #[error("must be at most {MAX_PATH_BYTES} bytes of UTF-8, is {0}")]
    TooLong(usize),
    /// More than 20 segments.
    #[error("must have at most {MAX_SEGMENTS} segments, has {0}")]
    TooDeep(usize),
    /// A prefix that does not end with `/`.
    #[error("must start and end with /")]
    NotADirectory,
}

fn check_characters(text: &str) -> Result<(), PathError> {
    if text.bytes().all(|b| (0x20..0x7F).contains(&b)) {
        return Ok(());
    }
    let forbidden = |c: &char| {
        matches!(c, '\u{2028}' | '\u{2029}')
            || matches!(c.general_category(), GeneralCategory::Control | GeneralCategory::Format)
    };
    match text.chars().find(forbidden) {
        Some(c) => Err(PathError::ForbiddenCharacter(c)),
        None if is_nfc(text) => Ok(()),
        None => Err(PathError::NotNfc),
    }
}

impl MemoryPath {
    /// Reads a path.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let relative = text.strip_prefix('/').ok_or(PathError::NotAbsolute)?;
        if text.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong(text.len()));
        }
        let mut segments = 0;
        for segment in relative.split('/') {
            match segment {
                "" => return Err(PathError::EmptySegment),
                "." | ".." => return Err(PathError::DotSegment),
                _ => segments += 1,
            }
        }
        if segments > MAX_SEGMENTS {
            return Err(PathError::TooDeep(segments));
        }
        check_characters(text)?;
        Ok(Self(text.into()))
    }

    /// A path that was parsed before it was stored.
    pub fn from_trusted(text: String) -> Self {
        Self(text.into())
    }

    /// The text, with its leading `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The paths above this one, nearest the root first: `/a`, `/a/b` for `/a/b/c`.
    pub fn ancestors(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').skip(1).map(|(at, _)| &self.0[..at])
    }

    /// The directory that this path would be, ending in `/`: whatever starts with it lies below.
    pub fn as_directory(&self) -> String {
        format!("{}/", self.0)
    }

    /// Whether both cannot be live in one store: equal, or one below the other.
    pub fn overlaps(&self, other: &MemoryPath) -> bool {
        let (short, long) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        match long.0.strip_prefix(&*short.0) {
            Some(rest) => rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }
}

impl fmt::Display for MemoryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A directory that a list is about: `/` or `/a/b/`. It need not exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathPrefix(Box<str>);

impl PathPrefix {
    /// The whole store.
    pub fn root() -> Self {
        Self("/".into())
    }

    /// Reads a prefix: it starts and ends with `/` and holds nothing that no path may hold.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if !(text.starts_with('/') && text.ends_with('/')) {
            return Err(PathError::NotADirectory);
        }
        if text != "/" {
            MemoryPath::parse(&text[..text.len() - 1])?;
        }
        Ok(Self(text.into()))
    }

    /// The text, with both slashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The child directory of this one that `path` lies in, ending in `/`; `None` if it is a direct child.
    pub fn child_directory<'a>(&self, path: &'a str) -> Option<&'a str> {
        let rest = path.strip_prefix(&*self.0)?;
        let slash = rest.find('/')?;
        Some(&path[..self.0.len() + slash + 1])
    }
}

#[cfg(test)]
mod tests;
