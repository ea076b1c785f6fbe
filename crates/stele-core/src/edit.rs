//! Edits of a text by a model: replacing a passage that is there once, and inserting lines. spec/anthropic.md 16.

/// Why a passage was not replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReplaced {
    /// It is not in the text.
    Absent,
    /// It is in the text more than once; the lines where it begins, from 1.
    Several(Vec<usize>),
}

/// A text with a passage replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The new text.
    pub text: String,
    /// The line where the passage began, from 1.
    pub line: usize,
}

/// Replaces `old`, which must be in `text` exactly once, by `new`.
///
/// # Errors
/// It is absent (an empty passage always is), or there several times.
pub fn replace_once(text: &str, old: &str, new: &str) -> Result<Replaced, NotReplaced> {
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    if old.is_empty() {
        return Err(NotReplaced::Absent);
    }
    let places: Vec<usize> = text.match_indices(old).map(|(at, _)| at).collect();
    match places[..] {
        [] => Err(NotReplaced::Absent),
        [at] => Ok(Replaced { text: [&text[..at], new, &text[at + old.len()..]].concat(), line: line(at) }),
        _ => Err(NotReplaced::Several(overlapping(text, old).map(line).collect())),
    }
}

/// Where `old` begins in `text`, also within itself.
fn overlapping<'a>(text: &'a str, old: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(old)?;
        from = at + step;
        Some(at)
    })
}

/// Inserts `inserted` after line `after` (0: before the first), on lines of its own; the text then ends with a line
/// break.
///
/// # Errors
/// There is no such line; the number of lines.
pub fn insert_after(text: &str, after: i64, inserted: &str) -> Result<String, usize> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    // What follows the last line break is no line.
    lines.pop_if(|last| last.is_empty());
    let count = lines.len();
    let after = usize::try_from(after).ok().filter(|after| *after <= count).ok_or(count)?;
    lines.insert(after, inserted.trim_end_matches('\n'));
    let mut new = lines.join("\n");
    if !new.ends_with('\n') {
        new.push('\n');
    }
    Ok(new)
}

/// Lines with their numbers, six wide, a tab between: `first` is the number of the first.
pub fn numbered<'a>(lines: impl IntoIterator<Item = &'a str>, first: usize) -> String {
    let numbered = lines.into_iter().zip(first..).map(|(line, number)| format!("{number:>6}\t{line}"));
    numbered.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_replaced_where_it_is_alone() {
        let replaced = replace_once("a\nb\nc\n", "b\n", "B\n").expect("once");
        assert_eq!((replaced.text.as_str(), replaced.line), ("a\nB\nc\n", 2));
        assert_eq!(replace_once("abc", "x", "y"), Err(NotReplaced::Absent));
        assert_eq!(replace_once("abc", "", "y"), Err(NotReplaced::Absent));
        assert_eq!(replace_once("x\ny x\n", "x", ""), Err(NotReplaced::Several(vec![1, 2])));
    }

    #[test]
    fn occurrences_that_overlap_are_named_where_there_are_two_apart() {
        assert_eq!(replace_once("aaaa", "aa", ""), Err(NotReplaced::Several(vec![1, 1, 1])));
        assert_eq!(replace_once("ééé é", "é", ""), Err(NotReplaced::Several(vec![1, 1, 1, 1])));
    }

    #[test]
    fn lines_go_where_they_are_asked_to() {
        assert_eq!(insert_after("1\n2\n", 0, "new\n\n"), Ok("new\n1\n2\n".into()));
        assert_eq!(insert_after("1\n2", 2, "new"), Ok("1\n2\nnew\n".into()));
        assert_eq!(insert_after("", 0, ""), Ok("\n".into()));
        assert_eq!(insert_after("1\n2\n", 3, "x"), Err(2));
        assert_eq!(insert_after("1\n2\n", -1, "x"), Err(2));
    }

    #[test]
    fn numbers_are_six_wide() {
        assert_eq!(numbered(["a", ""], 9), "     9\ta\n    10\t");
    }
}
