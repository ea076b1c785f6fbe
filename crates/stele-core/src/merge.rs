//! Three-way merges of texts by line: what both sides changed since they parted. DESIGN 9.
//!
//! Lines keep their endings, so that CRLF and a missing last newline survive. Edits that touch count as overlapping,
//! as in git: two insertions at one place have no order that anybody asked for.

use std::fmt::Write;
use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// What the sides are called in conflict markers.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The side that is in place.
    pub ours: &'a str,
    /// What both sides began with.
    pub base: &'a str,
    /// The side that is brought in.
    pub theirs: &'a str,
}

/// A merged text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The text; each overlap stands in it between `<<<<<<<` and `>>>>>>>`.
    pub text: String,
    /// How many overlaps there are.
    pub conflicts: usize,
}

/// The edit of some lines of the base.
struct Edit<'a> {
    base: Range<usize>,
    lines: Vec<&'a str>,
}

/// Merges what `ours` and `theirs` changed in `base`.
pub fn merge(base: &str, ours: &str, theirs: &str, labels: Labels<'_>) -> Merged {
    let lines: Vec<&str> = base.split_inclusive('\n').collect();
    let (mine, other) = (edits(&lines, ours), edits(&lines, theirs));
    let mut merged = Merged { text: String::new(), conflicts: 0 };
    let (mut i, mut j, mut done) = (0, 0, 0);
    while let Some(region) = next_region(&mine[i..], &other[j..]) {
        let own: Vec<_> = within(&mine[i..], &region).collect();
        let others: Vec<_> = within(&other[j..], &region).collect();
        (i, j) = (i + own.len(), j + others.len());
        merged.text.extend(lines[done..region.start].iter().copied());
        done = region.end;
        let (old, left) = (lines[region.clone()].concat(), applied(&lines, &region, &own));
        let right = applied(&lines, &region, &others);
        if left == right || right == old {
            merged.text.push_str(&left);
        } else if left == old {
            merged.text.push_str(&right);
        } else {
            merged.conflicts += 1;
            mark(&mut merged.text, [&left, &old, &right], labels);
        }
    }
    merged.text.extend(lines[done..].iter().copied());
    merged
}

fn edits<'a>(base: &[&str], side: &'a str) -> Vec<Edit<'a>> {
    let lines: Vec<&'a str> = side.split_inclusive('\n').collect();
    let operations = capture_diff_slices(Algorithm::Myers, base, &lines);
    let mut edits: Vec<Edit<'a>> = Vec::new();
    for operation in operations {
        let (tag, old, new) = operation.as_tag_tuple();
        if tag == DiffTag::Equal {
            continue;
        }
        match edits.last_mut() {
            Some(last) if last.base.end == old.start => {
                last.base.end = old.end;
                last.lines.extend(&lines[new]);
            }
            _ => edits.push(Edit { base: old, lines: lines[new].to_vec() }),
        }
    }
    edits
}

/// The lines of the base that the next edit concerns, with all that overlap it in turn.
fn next_region(ours: &[Edit<'_>], theirs: &[Edit<'_>]) -> Option<Range<usize>> {
    let first = [ours.first(), theirs.first()].into_iter().flatten().min_by_key(|edit| edit.base.start)?;
    let mut region = first.base.clone();
    loop {
        let touching = ours.iter().chain(theirs).filter(|e| e.base.start <= region.end);
        let end = touching.map(|edit| edit.base.end).fold(region.end, usize::max);
        if end == region.end {
            return Some(region);
        }
        region.end = end;
    }
}

fn within<'e, 'a>(edits: &'e [Edit<'a>], region: &Range<usize>) -> impl Iterator<Item = &'e Edit<'a>> {
    let end = region.end;
    edits.iter().take_while(move |edit| edit.base.start <= end)
}

fn applied(base: &[&str], region: &Range<usize>, edits: &[&Edit<'_>]) -> String {
    let mut text = String::new();
    let mut at = region.start;
    for edit in edits {
        text.extend(base[at..edit.base.start].iter().chain(&edit.lines).copied());
        at = edit.base.end;
    }
    text.extend(base[at..region.end].iter().copied());
    text
}

fn mark(text: &mut String, [ours, base, theirs]: [&str; 3], labels: Labels<'_>) {
    let ending = if ours.contains("\r\n") || theirs.contains("\r\n") { "\r\n" } else { "\n" };
    let sides = [("<<<<<<< ", labels.ours, ours), ("||||||| ", labels.base, base), ("=======", "", theirs)];
    for (sign, label, side) in sides {
        // Writing to a String cannot fail.
        let _ = write!(text, "{sign}{label}{ending}{side}");
        if !side.is_empty() && !side.ends_with('\n') {
            text.push_str(ending);
        }
    }
    let _ = write!(text, ">>>>>>> {}{ending}", labels.theirs);
}

/// Whether `text` still holds the markers of a conflict.
pub fn has_markers(text: &str) -> bool {
    let starts = |sign: &str| text.lines().any(|line| line.starts_with(sign));
    starts("<<<<<<< ") && starts(">>>>>>> ")
}

#[cfg(test)]
mod tests;
