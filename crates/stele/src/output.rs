//! Words to the person at the terminal, and answers for programs.
//!
//! What comes from a server never reaches a terminal raw: a memory may hold escape sequences that move the cursor,
//! set the title or answer in the user's name.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::config::process_env;

const NOT_WRITTEN: &str = "the output could not be written";

/// Says a line on standard output. A reader that went away is no error: this is for the server and other commands
/// whose work is not their output.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stdout(), "{}", shown(line));
}

/// Says a word of its own on standard error: what went wrong, or how work is going.
pub(crate) fn complain(what: &str) {
    let _ = writeln!(io::stderr(), "stele: {}", visible(what));
}

/// Prints a line.
///
/// # Errors
/// The reader went away, or the disk is full.
pub(crate) fn print(line: &str) -> anyhow::Result<()> {
    print_raw(&shown(line))
}

/// Prints a line that may hold colours of our own: what is not ours in it was made visible before.
pub(crate) fn print_raw(line: &str) -> anyhow::Result<()> {
    writeln!(io::stdout().lock(), "{line}").context(NOT_WRITTEN)
}

/// Lines about changes as they are made. What was begun is carried through although nobody reads about it.
#[derive(Default)]
pub(crate) struct Report {
    failed: Option<anyhow::Error>,
}

impl Report {
    /// Prints a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.keep(print(line));
    }

    /// Prints JSON on one line.
    pub(crate) fn json(&mut self, value: &impl Serialize) {
        self.keep(print_json(value));
    }

    fn keep(&mut self, printed: anyhow::Result<()>) {
        self.failed = self.failed.take().or(printed.err());
    }

    /// # Errors
    /// Something could not be written for another reason than that the reader went away.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        match self.failed {
            Some(error) if !reader_is_gone(&error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whether a failure is but that the reader of the output went away, as `head` does.
pub(crate) fn reader_is_gone(error: &anyhow::Error) -> bool {
    let gone = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(gone)
}

/// Prints a text as it is: byte for byte, or with visible control characters on a terminal.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(shown(text).as_bytes()).and_then(|()| out.flush()).context(NOT_WRITTEN)
}

/// Prints JSON on one line.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    print_raw(&serde_json::to_string(value)?)
}

/// A text as standard output takes it.
fn shown(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { visible(text) } else { Cow::Borrowed(text) }
}

/// Control characters of ASCII and C1, and those that turn the direction of writing.
fn is_unsafe(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

fn escaped(text: &str, keep: &[char]) -> String {
    text.chars().fold(String::with_capacity(text.len() + 8), |mut out, c| {
        match c {
            c if keep.contains(&c) || !is_unsafe(c) => out.push(c),
            c if c < '\u{100}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
        out
    })
}

/// A text whose control characters, but for newline and tab, are written out.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let keep = ['\n', '\t'];
    if text.chars().all(|c| keep.contains(&c) || !is_unsafe(c)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(escaped(text, &keep))
}

/// A text within a line of a table or message: control characters are written out, newlines too.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    if text.chars().any(is_unsafe) { Cow::Owned(escaped(text, &[])) } else { Cow::Borrowed(text) }
}

/// Prints rows below a header, in columns. Nothing at all for no rows, so that scripts see an empty output.
pub(crate) fn print_table<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> anyhow::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let rows: Vec<[Cow<'_, str>; N]> = std::iter::once(header.map(Cow::Borrowed))
        .chain(rows.iter().map(|row| row.each_ref().map(|text| cell(text))))
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for row in &rows {
        let cells = row.iter().zip(widths).map(|(text, width)| format!("{text:<width$}"));
        print(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// Whether standard output shows colours.
pub(crate) fn colours() -> bool {
    let plain = process_env("NO_COLOR").is_some() || process_env("TERM").as_deref() == Some("dumb");
    io::stdout().is_terminal() && !plain
}

/// Whether somebody sees how work is going.
pub(crate) fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// A bar on standard error for work of so many steps; none where nobody watches.
pub(crate) fn progress(length: u64) -> ProgressBar {
    let target = if is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {eta}").expect("the template is sound");
    ProgressBar::with_draw_target(Some(length), target).with_style(style)
}

/// So many things, in words.
pub(crate) fn count(number: usize, one: &str, several: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {several}") }
}

/// A time as tables show it: to the second.
pub(crate) fn time(text: &str) -> String {
    match text.split_once('.') {
        Some((seconds, _)) => format!("{}Z", seconds.replace('T', " ")),
        None => text.replace('T', " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_is_shown_raw() {
        assert_eq!(
            visible("a\x1b[2J\u{9b}31m\r\n\tb\u{202e}\x7f"),
            "a\\x1b[2J\\x9b31m\\x0d\n\tb\\u{202e}\\x7f"
        );
        assert_eq!(cell("a\nb\t"), "a\\x0ab\\x09");
        assert!(matches!(visible("plain ünï 漢\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_report_fails_for_a_full_disk_but_not_for_a_reader_that_left() {
        let end = |kinds: &[io::ErrorKind]| {
            let mut report = Report::default();
            for kind in kinds {
                report.keep(Err(io::Error::from(*kind)).context(NOT_WRITTEN));
            }
            report.end()
        };
        assert!(end(&[]).is_ok());
        assert!(end(&[io::ErrorKind::BrokenPipe, io::ErrorKind::BrokenPipe]).is_ok());
        assert!(end(&[io::ErrorKind::StorageFull]).is_err());
    }

    #[test]
    fn times_are_cut_to_the_second() {
        assert_eq!(time("2026-11-30T14:05:22.123456Z"), "2026-11-30 14:05:22Z");
        assert_eq!(time("2026-11-30T14:05:22Z"), "2026-11-30 14:05:22Z");
    }
}
