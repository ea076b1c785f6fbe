//! `stele memory grep`: the texts are fetched in batches and matched here, each line by itself.

use regex::{Regex, RegexBuilder};
use serde::Serialize;
use serde_json::json;
use stele_client::Store;

use super::{Session, resolve};
use crate::cli::{Address, Grep};
use crate::failure::{Class, NoMatch, fail};
use crate::ids::store_uuid;
use crate::output::{cell, print, print_json};

/// Most bytes of a compiled pattern, so that one like `(a{1000}){1000}` is refused.
const PATTERN_BYTES: usize = 16 * 1024 * 1024;

/// A line that matches.
#[derive(Debug, PartialEq, Serialize)]
struct Line<'a> {
    number: usize,
    text: &'a str,
}

pub(crate) fn grep(session: &Session, args: Grep) -> anyhow::Result<()> {
    let pattern = pattern(&args)?;
    let place = place(&args)?;
    let store = resolve::store(&session.client, &place.store)?;
    let uuid = store_uuid(&store.id)
        .ok_or_else(|| fail(Class::Other, format!("the server's id {} is none of a store", store.id)))?;
    let memories = memories(session, &store, &uuid, place.path.as_deref())?;
    let mut found = Vec::new();
    let mut matched = false;
    for texts in session.client.texts(&uuid, memories) {
        for text in texts? {
            let (Some(path), Some(content)) = (&text.path, &text.content) else { continue };
            let lines = matches(&pattern, content);
            matched |= !lines.is_empty();
            match (lines.is_empty(), session.json) {
                (true, _) => {}
                (false, true) if args.files_with_matches => found.push(json!({"path": path})),
                (false, true) => found.push(json!({"path": path, "lines": lines})),
                (false, false) => show(&args, path, &lines)?,
            }
        }
    }
    if session.json {
        print_json(&json!({"data": found}))?;
    }
    if matched { Ok(()) } else { Err(NoMatch.into()) }
}

fn pattern(args: &Grep) -> anyhow::Result<Regex> {
    let text = if args.fixed_strings { regex::escape(&args.pattern) } else { args.pattern.clone() };
    let built = RegexBuilder::new(&text).case_insensitive(args.ignore_case).size_limit(PATTERN_BYTES).build();
    built.map_err(|error| {
        let why = error.to_string();
        let why = why.trim_end().rsplit('\n').next().unwrap_or_default().trim_start_matches("error: ");
        let message =
            format!("{:?} is no regular expression: {why}. -F takes it for plain text", args.pattern);
        fail(Class::Usage, message)
    })
}

/// The place, its path within its store's address or apart from it.
fn place(args: &Grep) -> anyhow::Result<Address> {
    match (&args.place, &args.path) {
        (place, None) => Ok(place.clone()),
        (Address { path: Some(_), .. }, Some(_)) => {
            Err(fail(Class::Usage, "say the path once: STORE:/path, or STORE /path"))
        }
        (Address { store, .. }, Some(path)) if path.starts_with('/') => {
            Ok(Address { store: store.clone(), path: Some(path.clone()) })
        }
        (_, Some(path)) => Err(fail(Class::Usage, format!("a path must begin with /, not {path:?}"))),
    }
}

/// The ids of the memory at a path, or of all below it; of all where none is given.
fn memories(session: &Session, store: &Store, uuid: &str, path: Option<&str>) -> anyhow::Result<Vec<String>> {
    let path = path.unwrap_or("/").trim_end_matches('/');
    let below = format!("{path}/");
    let mut tree = session.client.tree(uuid)?;
    tree.retain(|memory| memory.path == path || memory.path.starts_with(&below));
    if tree.is_empty() && !path.is_empty() {
        return Err(resolve::no_memory(store, path));
    }
    tree.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(tree.into_iter().map(|memory| memory.memory_id).collect())
}

fn matches<'a>(pattern: &Regex, content: &'a str) -> Vec<Line<'a>> {
    let lines = content.lines().enumerate();
    lines
        .filter(|(_, text)| pattern.is_match(text))
        .map(|(before, text)| Line { number: before + 1, text })
        .collect()
}

fn show(args: &Grep, path: &str, lines: &[Line<'_>]) -> anyhow::Result<()> {
    let path = cell(path);
    if args.files_with_matches {
        return print(&path);
    }
    for Line { number, text } in lines {
        match args.line_number {
            true => print(&format!("{path}:{number}:{text}"))?,
            false => print(&format!("{path}:{text}"))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Flags {
        #[command(flatten)]
        grep: Grep,
    }

    fn args(line: &[&str]) -> Grep {
        Flags::try_parse_from([&["grep"], line].concat()).expect("arguments").grep
    }

    fn numbers(line: &[&str], text: &str) -> Vec<usize> {
        let pattern = pattern(&args(line)).expect("a pattern");
        matches(&pattern, text).iter().map(|line| line.number).collect()
    }

    #[test]
    fn each_line_is_matched_by_itself() {
        let text = "one\r\ntwo.\nTWO\n\nthree";
        assert_eq!(numbers(&["^t", "s"], text), [2, 5]);
        assert_eq!(numbers(&["-i", "^two$", "s"], text), [3]);
        assert_eq!(numbers(&["-F", "wo.", "s"], text), [2]);
        assert_eq!(numbers(&["e$", "s"], text), [1, 5]);
        assert_eq!(numbers(&["-i", "ÄPFEL", "s"], "äpfel"), [1]);
        assert!(numbers(&["x", "s"], text).is_empty());
    }

    #[test]
    fn a_bad_pattern_and_a_path_said_twice_are_refused() {
        for bad in ["(", "(a{1000}){1000}{1000}"] {
            let refused = pattern(&args(&[bad, "s"])).expect_err("refused");
            assert_eq!(crate::failure::class(&refused), Class::Usage);
            assert!(refused.to_string().contains("-F"), "{refused}");
        }
        assert!(pattern(&args(&["-F", "(", "s"])).is_ok());
        assert!(place(&args(&["x", "s:/a", "/b"])).is_err());
        assert!(place(&args(&["x", "s", "b"])).is_err());
        assert_eq!(place(&args(&["x", "s", "/b"])).expect("a place").path.as_deref(), Some("/b"));
    }
}
