//! The lines of a file, one at a time and each within a bound, however large the file is.

use std::io::{BufRead, Read};

use anyhow::Context;

/// Longest line: a message with several pictures in it.
pub(super) const LONGEST: usize = 64 * 1024 * 1024;

/// A line without its end.
pub(super) enum Line {
    /// One that ends.
    Whole(Vec<u8>),
    /// The last one, where the file ends without a line end.
    Last(Vec<u8>),
    /// One longer than [`LONGEST`], passed over.
    TooLong,
}

pub(super) struct Lines<R> {
    input: R,
    number: u64,
    longest: usize,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, number: 0, longest: LONGEST }
    }

    /// The next line and its number, from 1.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<(u64, Line)>> {
        let mut line = Vec::new();
        let most = self.longest as u64 + 1;
        (&mut self.input).take(most).read_until(b'\n', &mut line).context("the transcript cannot be read")?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let found = match line.last() {
            Some(b'\n') => {
                line.pop();
                Line::Whole(line)
            }
            _ if line.len() > self.longest => {
                drop(line);
                self.pass()?;
                Line::TooLong
            }
            _ => Line::Last(line),
        };
        Ok(Some((self.number, found)))
    }

    /// Passes over the rest of a line.
    fn pass(&mut self) -> anyhow::Result<()> {
        loop {
            let ready = self.input.fill_buf().context("the transcript cannot be read")?;
            let (used, over) = match ready.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (ready.len(), ready.is_empty()),
            };
            self.input.consume(used);
            if over {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_passed_over_and_the_last_one_may_lack_its_end() {
        let text = b"ab\n\nlonger than five\nabcde\ncd";
        let mut lines =
            Lines { input: std::io::BufReader::with_capacity(4, &text[..]), number: 0, longest: 5 };
        let mut seen = Vec::new();
        while let Some((number, line)) = lines.next().expect("read") {
            seen.push((
                number,
                match line {
                    Line::Whole(text) => String::from_utf8(text).expect("text"),
                    Line::Last(text) => format!("last {}", String::from_utf8(text).expect("text")),
                    Line::TooLong => "too long".into(),
                },
            ));
        }
        let expected = ["ab", "", "too long", "abcde", "last cd"];
        assert_eq!(seen, (1..).zip(expected.map(str::to_owned)).collect::<Vec<_>>());
    }
}
