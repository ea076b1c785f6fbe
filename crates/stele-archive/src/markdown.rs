//! A memory as one text file: its content, with front matter only where something else must survive.
//!
//! ```text
//! ---
//! summary: "What it says"
//! ---
//! The content, byte for byte.
//! ```
//!
//! Front matter is Stele's where it holds nothing but `summary`; any other is the writer's own, and part of the content. So a
//! file is its content, byte for byte, unless there is a summary, or unless the content itself would be read as front
//! matter of Stele's: then an empty one stands before it.

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

/// The parts of a text that begins with front matter of Stele's.
fn front_matter(text: &str) -> Option<Parts<'_>> {
    let mut rest = line(text).filter(|(first, _)| *first == "---")?.1;
    let mut summary = None;
    loop {
        let (next, behind) = line(rest)?;
        rest = behind;
        match next.strip_prefix("summary:") {
            _ if next == "---" => return Some(Parts { summary, content: rest }),
            Some(value) if summary.is_none() => summary = Some(scalar(value)?),
            _ => return None,
        }
    }
}

/// The first line of a text without its end, and what follows; `None` where the line does not end.
fn line(text: &str) -> Option<(&str, &str)> {
    let (line, rest) = text.split_once('\n')?;
    Some((line.strip_suffix('\r').unwrap_or(line), rest))
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
        ] {
            assert_eq!(encode("", text), text);
            back("", text);
        }
    }

    #[test]
    fn what_would_be_taken_for_front_matter_comes_back_whole() {
        for text in [
            "---\n---\n",
            "---\r\nsummary: x\r\n---\r\nbody",
            "---\nsummary: 'it''s'\n---\n",
            "---\n---\n---\n---\nx",
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

    proptest! {
        #[test]
        fn every_memory_comes_back(summary in "(\\PC|[\n\r\"'\\\\]){0,20}", start in "(---\r?\n|summary: \"?x\"?\n|a\n){0,5}", rest in "\\PC{0,20}") {
            back(&summary, &format!("{start}{rest}"));
        }
    }
}
