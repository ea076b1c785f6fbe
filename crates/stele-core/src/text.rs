//! Names, descriptions, metadata, summaries and contents: texts with bounds. spec/anthropic.md 2 and 3.4.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::hash::Sha256;

/// Longest store name, in characters.
pub const MAX_NAME_CHARS: usize = 255;
/// Longest store description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;
/// Longest reason, in characters.
pub const MAX_REASON_CHARS: usize = 4_096;
/// Most metadata pairs of one object.
pub const MAX_METADATA_PAIRS: usize = 16;
/// Longest metadata key, in characters; it has at least one.
pub const MAX_METADATA_KEY_CHARS: usize = 64;
/// Longest metadata value, in characters; it may be empty.
pub const MAX_METADATA_VALUE_CHARS: usize = 512;

/// Longest slug: what a file name may have.
const MAX_SLUG_BYTES: usize = 255;

/// What is wrong with a text. Characters are Unicode scalar values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// It has no character where one is needed.
    #[error("must not be empty")]
    Empty,
    /// It has too many characters.
    #[error("must be at most {max} characters, has {actual}")]
    TooLong {
        /// The most characters allowed.
        max: usize,
        /// The characters it has.
        actual: usize,
    },
    /// It has too many bytes.
    #[error("must be at most {max} bytes of UTF-8, has {actual}")]
    TooLarge {
        /// The most bytes allowed.
        max: usize,
        /// The bytes it has.
        actual: usize,
    },
    /// It holds a control character.
    #[error("must not hold control characters")]
    ControlCharacter,
    /// It holds U+0000.
    #[error("must not hold NUL (U+0000)")]
    Nul,
    /// Too many metadata pairs.
    #[error("must have at most {MAX_METADATA_PAIRS} pairs, would have {0}")]
    TooManyPairs(usize),
}

fn at_most_chars(text: &str, max: usize) -> Result<(), TextError> {
    // A text has at most as many characters as bytes, so most texts need no count.
    if text.len() > max {
        let actual = text.chars().count();
        if actual > max {
            return Err(TextError::TooLong { max, actual });
        }
    }
    Ok(())
}

fn no_nul(text: &str) -> Result<(), TextError> {
    if text.as_bytes().contains(&0) { Err(TextError::Nul) } else { Ok(()) }
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        pub struct $name(Box<str>);

        impl $name {
            /// A text that was parsed before it was stored.
            pub fn from_trusted(text: String) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
    };
}

text!(
    /// The name of a store, workspace or key: 1 to 255 characters, no control characters; need not be unique.
    Name
);
text!(
    /// The description of a store: at most 1,024 characters; empty when unset.
    Description
);
text!(
    /// Why a change was made: 1 to 4,096 characters.
    Reason
);
text!(
    /// The summary of a memory: at most `Limits::summary_chars` characters; empty when there is none.
    Summary
);

impl Name {
    /// Reads a name.
    ///
    /// # Errors
    /// Empty, too long, or a control character in it.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text.is_empty() {
            return Err(TextError::Empty);
        }
        at_most_chars(text, MAX_NAME_CHARS)?;
        if text.chars().any(char::is_control) {
            return Err(TextError::ControlCharacter);
        }
        Ok(Self(text.into()))
    }
}

impl Description {
    /// Reads a description.
    ///
    /// # Errors
    /// Too long, or NUL in it.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        at_most_chars(text, MAX_DESCRIPTION_CHARS)?;
        no_nul(text)?;
        Ok(Self(text.into()))
    }
}

impl Reason {
    /// Reads a reason.
    ///
    /// # Errors
    /// Empty, too long, or NUL in it.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        if text.is_empty() {
            return Err(TextError::Empty);
        }
        at_most_chars(text, MAX_REASON_CHARS)?;
        no_nul(text)?;
        Ok(Self(text.into()))
    }
}

impl Summary {
    /// The summary of a memory that has none.
    pub fn empty() -> Self {
        Self("".into())
    }

    /// Reads a summary of at most `max` characters.
    ///
    /// # Errors
    /// Too long, or NUL in it.
    pub fn parse(text: &str, max: usize) -> Result<Self, TextError> {
        at_most_chars(text, max)?;
        no_nul(text)?;
        Ok(Self(text.into()))
    }
}

/// The content of a memory: any UTF-8 without NUL, kept byte for byte, with its hash. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    bytes: Bytes,
    sha256: Sha256,
}

impl Content {
    /// Reads a content of at most `max_bytes` bytes of UTF-8.
    ///
    /// # Errors
    /// Too large, or NUL in it: PostgreSQL's clients and C programs could not hold it, so no engine does.
    pub fn parse(text: impl Into<String>, max_bytes: usize) -> Result<Self, TextError> {
        let text = text.into();
        if text.len() > max_bytes {
            return Err(TextError::TooLarge { max: max_bytes, actual: text.len() });
        }
        no_nul(&text)?;
        let sha256 = Sha256::of(text.as_bytes());
        Ok(Self { bytes: text.into_bytes().into(), sha256 })
    }

    /// The UTF-8 bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Their hash.
    pub fn sha256(&self) -> Sha256 {
        self.sha256
    }

    /// Their number.
    pub fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// Free pairs on an object, kept and returned, never interpreted.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Metadata(BTreeMap<String, String>);

impl Metadata {
    /// Metadata that was checked before it was stored.
    pub fn from_trusted(pairs: BTreeMap<String, String>) -> Self {
        Self(pairs)
    }

    /// The pairs, by key.
    pub fn pairs(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// This metadata after `patch`.
    ///
    /// # Errors
    /// More than 16 pairs afterwards.
    pub fn patched(&self, patch: &MetadataPatch) -> Result<Metadata, TextError> {
        let mut pairs = self.0.clone();
        for (key, value) in &patch.0 {
            match value {
                Some(value) => pairs.insert(key.clone(), value.clone()),
                None => pairs.remove(key),
            };
        }
        if pairs.len() > MAX_METADATA_PAIRS {
            return Err(TextError::TooManyPairs(pairs.len()));
        }
        Ok(Metadata(pairs))
    }
}

/// A change of metadata: a text sets, `None` removes, keys that are absent stay.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct MetadataPatch(BTreeMap<String, Option<String>>);

impl MetadataPatch {
    /// Reads a patch; how many pairs result is judged when it is applied.
    ///
    /// # Errors
    /// The key or value that breaks a bound, with the error.
    pub fn parse(pairs: BTreeMap<String, Option<String>>) -> Result<Self, (String, TextError)> {
        for (key, value) in &pairs {
            if key.is_empty() {
                return Err((key.clone(), TextError::Empty));
            }
            let value = value.as_deref().unwrap_or_default();
            at_most_chars(key, MAX_METADATA_KEY_CHARS)
                .and_then(|()| at_most_chars(value, MAX_METADATA_VALUE_CHARS))
                .and_then(|()| no_nul(key))
                .and_then(|()| no_nul(value))
                .map_err(|error| (key.clone(), error))?;
        }
        Ok(Self(pairs))
    }
}

/// The name of a store's directory: lowercase, every run of characters other than ASCII letters and digits one
/// hyphen, none at the ends; empty if nothing remains. spec/anthropic.md 6.3, spec/recursion.md 5.
pub fn slug(name: &str) -> String {
    let mut slug = String::with_capacity(name.len());
    for c in name.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(MAX_SLUG_BYTES);
    if slug.ends_with('-') {
        slug.pop();
    }
    slug
}

/// Looks for a free slug on `base` in few steps, however many are taken: the numbers tried double until one is free,
/// then halve. Slugs that were given out one after the other without a gap get the next number.
#[derive(Clone, Debug)]
pub struct SlugSearch<'a> {
    base: &'a str,
    /// The greatest number found taken.
    taken: u64,
    /// The smallest number found free above it.
    free: Option<u64>,
}

impl<'a> SlugSearch<'a> {
    /// A search that first tries `base` itself.
    pub fn new(base: &'a str) -> Self {
        Self { base, taken: 0, free: None }
    }

    fn number(&self) -> u64 {
        match self.free {
            Some(free) => self.taken + (free - self.taken) / 2,
            None => (self.taken * 2).max(1),
        }
    }

    fn slug(&self, number: u64) -> String {
        numbered_slug(self.base, number)
    }

    /// The slug to look up next, or the answer: a free one.
    pub fn next(&self) -> Result<String, String> {
        match self.free {
            Some(free) if free == self.taken + 1 => Ok(self.slug(free)),
            _ => Err(self.slug(self.number())),
        }
    }

    /// Takes in whether the slug looked up is taken.
    pub fn found(&mut self, taken: bool) {
        let number = self.number();
        if taken { self.taken = number } else { self.free = Some(number) }
    }
}

/// The `number`th slug on `base`: `base` itself, `-2`, `-3` and so on, cut so that it stays a slug.
pub(crate) fn numbered_slug(base: &str, number: u64) -> String {
    if number == 1 {
        return base.to_owned();
    }
    let tail = format!("-{number}");
    format!("{}{tail}", &base[..base.len().min(MAX_SLUG_BYTES - tail.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(pairs: &[(&str, Option<&str>)]) -> MetadataPatch {
        let pairs = pairs.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned))).collect();
        MetadataPatch::parse(pairs).expect("a legal patch")
    }

    #[test]
    fn bounds_count_characters_not_bytes() {
        assert!(Name::parse(&"😀".repeat(255)).is_ok());
        assert_eq!(Name::parse(&"a".repeat(256)), Err(TextError::TooLong { max: 255, actual: 256 }));
        assert!(Description::parse(&"é".repeat(1024)).is_ok());
        assert!(Description::parse(&"a".repeat(1025)).is_err());
        assert!(Summary::parse(&"😀".repeat(512), 512).is_ok());
        assert_eq!(Name::parse("a\nb"), Err(TextError::ControlCharacter));
        assert_eq!(Name::parse(""), Err(TextError::Empty));
    }

    #[test]
    fn content_counts_bytes_and_refuses_nul() {
        assert!(Content::parse("€".repeat(34_133) + "a", 102_400).is_ok());
        let error = Content::parse("€".repeat(34_134), 102_400);
        assert_eq!(error, Err(TextError::TooLarge { max: 102_400, actual: 102_402 }));
        assert_eq!(Content::parse("a\0b", 10), Err(TextError::Nul));
        assert_eq!(Content::parse("", 10).expect("empty is legal").size_bytes(), 0);
    }

    #[test]
    fn a_patch_sets_removes_and_is_bounded_by_its_result() {
        let sixteen: Vec<_> = (0..16).map(|i| i.to_string()).collect();
        let all: Vec<_> = sixteen.iter().map(|k| (k.as_str(), Some("v"))).collect();
        let full = Metadata::default().patched(&patch(&all)).expect("16 pairs fit");
        assert_eq!(full.patched(&patch(&[("more", Some("v"))])), Err(TextError::TooManyPairs(17)));
        let swapped = full.patched(&patch(&[("0", None), ("more", Some(""))])).expect("16 pairs again");
        assert_eq!(swapped.pairs().len(), 16);
        assert_eq!(swapped.pairs()["more"], "");
    }

    fn search(taken: &[u64]) -> (String, usize) {
        let mut search = SlugSearch::new("x");
        let mut looks = 0;
        loop {
            match search.next() {
                Ok(free) => return (free, looks),
                Err(slug) => {
                    let number = slug.strip_prefix("x-").map_or(1, |n| n.parse().expect("a number"));
                    search.found(taken.contains(&number));
                    looks += 1;
                }
            }
        }
    }

    #[test]
    fn a_free_slug_is_found_in_few_looks() {
        assert_eq!(search(&[]).0, "x");
        for count in 1..100 {
            let taken: Vec<u64> = (1..=count).collect();
            assert_eq!(search(&taken).0, format!("x-{}", count + 1), "the next number where there is no gap");
        }
        let many: Vec<u64> = (1..=6_000).collect();
        let (slug, looks) = search(&many);
        assert_eq!(slug, "x-6001");
        assert!(looks < 30, "{looks}");
        assert_eq!(search(&[2, 3]).0, "x", "a name that is free again is given again");
    }

    #[test]
    fn slugs_are_as_both_specs_say() {
        let cases = [
            ("User Preferences", "user-preferences"),
            ("(Notes)", "notes"),
            ("Ünïcode", "n-code"),
            ("a  b__c", "a-b-c"),
            ("Release policy", "release-policy"),
            ("日本", ""),
        ];
        for (name, expected) in cases {
            assert_eq!(slug(name), expected, "{name}");
        }
    }
}
