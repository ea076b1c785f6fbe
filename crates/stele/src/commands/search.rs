//! `stele search`.

use stele_client::{Hit, Hits, Span};

use super::{Session, resolve};
use crate::cli::Search;
use crate::output::{cell, colours, complain, print_json, print_raw, visible};

/// Most hits of a page.
const PAGE: usize = 100;
const BOLD: (&str, &str) = ("\x1b[1m", "\x1b[0m");

pub(crate) fn search(session: &Session, args: Search) -> anyhow::Result<()> {
    let store = resolve::store(&session.client, &args.place.store)?;
    let (prefix, query) = (resolve::prefix(&args.place), args.query.join(" "));
    let mut left = args.limit as usize;
    let mut found = Hits { data: Vec::new(), total_matches: 0, next_page: None };
    loop {
        let page = found.next_page.take();
        let more = session.client.search(&store.id, &query, &prefix, left.min(PAGE), page.as_deref())?;
        left = left.saturating_sub(more.data.len());
        found.total_matches = more.total_matches;
        found.next_page = more.next_page;
        found.data.extend(more.data);
        if found.next_page.is_none() || left == 0 {
            break;
        }
    }
    if session.json {
        return print_json(&found);
    }
    if found.data.is_empty() {
        complain(&format!("nothing in {} matches", store.name));
    }
    let bold = colours();
    for (place, hit) in found.data.iter().enumerate() {
        if place > 0 {
            print_raw("")?;
        }
        print_raw(&shown(hit, bold))?;
    }
    let hidden = found.total_matches.saturating_sub(found.data.len());
    if hidden > 0 {
        complain(&format!("{hidden} more match: -n shows more"));
    }
    Ok(())
}

/// A hit for people: path and summary, then the passage, indented. What a memory holds cannot steer the terminal,
/// whatever standard output is: this is for eyes, and `cat` is for bytes.
fn shown(hit: &Hit, bold: bool) -> String {
    let title = match hit.summary.is_empty() {
        true => cell(&hit.path).into_owned(),
        false => format!("{}  {}", cell(&hit.path), cell(&hit.summary)),
    };
    let passage = marked(&hit.snippet, if bold { &hit.highlights } else { &[] });
    let lines = passage.trim_end().lines().map(|line| format!("\n    {line}"));
    title + &lines.collect::<String>()
}

/// A text made visible, with these pieces of it bold. Pieces that overlap or lie outside are taken as far as they fit.
fn marked(text: &str, spans: &[Span]) -> String {
    let scalars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let piece = |from: usize, to: usize| scalars[from..to].iter().collect::<String>();
    for span in spans {
        let (start, end) = (span.start.clamp(done, scalars.len()), span.end.min(scalars.len()));
        if start >= end {
            continue;
        }
        out.push_str(&visible(&piece(done, start)));
        // Line by line, so that what stands before a line is never bold.
        for (n, part) in piece(start, end).split('\n').enumerate() {
            if n > 0 {
                out.push('\n');
            }
            if !part.is_empty() {
                out.extend([BOLD.0, visible(part).as_ref(), BOLD.1]);
            }
        }
        done = end;
    }
    out.push_str(&visible(&piece(done, scalars.len())));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    #[test]
    fn highlights_count_scalars_and_never_escape() {
        assert_eq!(marked("aé漢b", &[span(1, 3)]), "a\x1b[1mé漢\x1b[0mb");
        assert_eq!(marked("ab\ncd", &[span(1, 4)]), "a\x1b[1mb\x1b[0m\n\x1b[1mc\x1b[0md");
        assert_eq!(marked("x\x1b[2Jy", &[span(0, 6)]), "\x1b[1mx\\x1b[2Jy\x1b[0m");
    }

    #[test]
    fn strange_highlights_are_taken_as_far_as_they_fit() {
        for spans in [vec![span(2, 1)], vec![span(9, 12)], vec![span(1, 1)]] {
            assert_eq!(marked("abc", &spans), "abc");
        }
        assert_eq!(marked("abc", &[span(0, 2), span(1, 99)]), "\x1b[1mab\x1b[0m\x1b[1mc\x1b[0m");
    }

    #[test]
    fn a_hit_is_its_path_and_the_passage_below_it() {
        let hit = Hit {
            memory_id: "mem_1".into(),
            path: "/a\x1bb.md".into(),
            summary: "What\nit is".into(),
            snippet: "one\ntwo\n".into(),
            highlights: vec![span(0, 3)],
            score: 1.0,
            updated_at: String::new(),
        };
        assert_eq!(shown(&hit, false), "/a\\x1bb.md  What\\x0ait is\n    one\n    two");
        assert_eq!(shown(&hit, true), "/a\\x1bb.md  What\\x0ait is\n    \x1b[1mone\x1b[0m\n    two");
    }
}
