//! A memory as one text file: its content, with front matter only where something else must survive.
//!
//! ```text
//! ---
//! summary: "What it says"
//! ---
//! The content, byte for byte.
//! ```
//!
//! Front matter is Stele's where it holds a `summary` and nothing else, in lines that end with LF; any other is the writer's
//! own, and part of the content. So a file is its content, byte for byte, unless there is a summary, or unless the content
//! itself would be read as front matter of Stele's: then an empty one stands before it. Anywhere else an empty one is text.

use std::borrow::Cow;

/// A file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The summary that its front matter gives.
    pub summary: Option<String>,
    /// The content.
    pub content: &'a str,
}

/// The file of a memory; `summary` is empty where there is none.
pub fn encode<'a>(summary: &str, content: &'a str) -> Cow<'a, str> {
    if !summary.is_empty() {
        // A JSON string is a YAML scalar, whatever is in it.
        let summary = serde_json::Value::from(summary);
        return Cow::Owned(format!("---\nsummary: {summary}\n---\n{content}"));
    }
    match front_matter(content) {
        Some(_) => Cow::Owned(format!("---\n---\n{content}")),
        None => Cow::Borrowed(content),
    }
}

/// What a file says.
pub fn decode(text: &str) -> Parts<'_> {
    front_matter(text).unwrap_or(Parts { summary: None, content: text })
}

/// Front matter that holds nothing.
const EMPTY: &str = "---\n---\n";

/// The parts of a text that begins with front matter of Stele's.
fn front_matter(text: &str) -> Option<Parts<'_>> {
    let mut rest = text;
    while let Some(behind) = rest.strip_prefix(EMPTY) {
        rest = behind;
    }
    // However many empty ones stand before it: the first was added, and the others are the content's.
    let summarized = summarized(rest)?;
    match text.strip_prefix(EMPTY) {
        Some(content) => Some(Parts { summary: None, content }),
        None => Some(summarized),
    }
}

/// The parts of a text that begins with a summary.
fn summarized(text: &str) -> Option<Parts<'_>> {
    let (value, rest) = text.strip_prefix("---\nsummary:")?.split_once('\n')?;
    let content = rest.strip_prefix("---\n")?;
    // A file whose lines end with CR LF could not come back as it was.
    let summary = (!value.ends_with('\r')).then(|| scalar(value))??;
    Some(Parts { summary: Some(summary), content })
}

/// A value on one line, as people write it in YAML: quoted or plain.
fn scalar(value: &str) -> Option<String> {
    let value = value.strip_prefix([' ', '\t']).or_else(|| value.is_empty().then_some(""))?.trim();
    match value.as_bytes().first() {
        Some(b'"') => serde_json::from_str(value).ok(),
        Some(b'\'') => {
            let inner = value.strip_prefix('\'')?.strip_suffix('\'')?;
            let single = inner.replace("''", "").contains('\'');
            (value.len() > 1 && !single).then(|| inner.replace("''", "'"))
        }
        // More than a line of text: a block, a list, an anchor.
        Some(b'|' | b'>' | b'[' | b'{' | b'&' | b'*' | b'!' | b'%' | b'@' | b'`' | b'#') => None,
        _ => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn back(summary: &str, content: &str) {
        let file = encode(summary, content);
        let parts = decode(&file);
        assert_eq!(parts.content, content, "{file:?}");
        assert_eq!(parts.summary.unwrap_or_default(), summary, "{file:?}");
    }

    #[test]
    fn a_text_that_needs_no_front_matter_is_its_own_file() {
        for text in [
            "",
            "text",
            "---",
            "----\n",
            "--- \n---\n",
            "---\ntitle: x\n---\nbody",
            "---\nsummary: |\n a\n---\n",
            "---\n---\n",
            "---\n---\n# Jekyll title\n",
            "---\n---\n---\n---\nx",
            "---\n---\n---\ntitle: x\n---\n",
            "---\r\nsummary: x\r\n---\r\nbody",
            "---\nsummary: x\r\n---\nbody",
            "---\nsummary: x\nsummary: y\n---\nbody",
            "---\nsummary: x\n---",
        ] {
            assert_eq!(encode("", text), text);
            back("", text);
        }
    }

    #[test]
    fn what_would_be_taken_for_front_matter_comes_back_whole() {
        for text in [
            "---\nsummary: x\n---\nbody",
            "---\nsummary: 'it''s'\n---\n",
            "---\n---\n---\nsummary: x\n---\nbody\r\n",
            "---\n---\n---\n---\n---\nsummary:\n---\n",
        ] {
            assert_ne!(encode("", text), text);
            back("", text);
            back("a \"summary\"\nof two lines: \\", text);
        }
    }

    #[test]
    fn people_write_summaries_by_hand() {
        let summary = |line: &str| decode(&format!("---\nsummary:{line}\n---\nbody")).summary;
        assert_eq!(summary(" plain: and more").as_deref(), Some("plain: and more"));
        assert_eq!(summary(" 'it''s'").as_deref(), Some("it's"));
        assert_eq!(summary(" \"a\\nb\"").as_deref(), Some("a\nb"));
        assert_eq!(summary("").as_deref(), Some(""));
        for foreign in [" [a, b]", " 'a' b'", " \"open", "no space", " '"] {
            assert_eq!(summary(foreign), None, "{foreign}");
        }
    }

    /// Lines that front matter begins with, whole or not, in any order.
    const LINES: &str = "(---\r?\n|---\n---\n|summary: \"?x\"?\r?\n|summary:\n|a\n){0,6}";

    proptest! {
        #[test]
        fn every_memory_comes_back(summary in "(\\PC|[\n\r\"'\\\\]){0,20}", start in LINES, rest in "\\PC{0,20}") {
            back(&summary, &format!("{start}{rest}"));
        }

        #[test]
        fn every_file_without_a_summary_comes_back(start in LINES, rest in "(\\PC|[\n\r]){0,20}") {
            let file = format!("{start}{rest}");
            let parts = decode(&file);
            if parts.summary.is_none() {
                prop_assert_eq!(encode("", parts.content), file.as_str());
            }
        }

        #[test]
        fn every_file_with_a_summary_as_written_here_comes_back(summary in "\\PC{1,20}", start in LINES, rest in "\\PC{0,20}") {
            let file = format!("---\nsummary: {}\n---\n{start}{rest}", serde_json::Value::from(summary));
            let parts = decode(&file);
            prop_assert_eq!(encode(parts.summary.as_deref().unwrap_or_default(), parts.content), file.as_str());
        }
    }
}
