//! Cutting the reasoning that some models write into their text, between `<think>` and `</think>`.
//!
//! Only a `<think>` that begins a line counts, so that a text about such tags stays whole. Some servers put the opening
//! tag into the prompt, so that only the closing one is in the answer: [`after_lone_end`].

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Passes on a text but for its reasoning, piece by piece.
#[derive(Debug)]
pub(crate) struct Cutter {
    state: State,
    /// Whether the text had an opening tag.
    opened: bool,
}

#[derive(Debug)]
enum State {
    /// At the start of a line: white space, and perhaps part of an opening tag, that is held back.
    Start {
        held: String,
        /// Whether the white space is that after reasoning, which goes too.
        after: bool,
    },
    /// Within a line.
    Within,
    /// In the reasoning: its last characters.
    Inside(String),
}

impl Default for Cutter {
    fn default() -> Self {
        Self { state: State::Start { held: String::new(), after: false }, opened: false }
    }
}

impl Cutter {
    /// What may be shown of the text so far that was not shown before.
    pub(crate) fn read(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.take(c, &mut shown);
        }
        shown
    }

    fn take(&mut self, c: char, shown: &mut String) {
        match &mut self.state {
            State::Within => {
                shown.push(c);
                if c == '\n' {
                    self.state = State::Start { held: String::new(), after: false };
                }
            }
            State::Inside(tail) => {
                tail.push(c);
                if tail.ends_with(CLOSE) {
                    self.state = State::Start { held: String::new(), after: true };
                } else if tail.len() > 64 {
                    let keep = tail.char_indices().rev().nth(CLOSE.len()).map_or(0, |(at, _)| at);
                    tail.drain(..keep);
                }
            }
            State::Start { held, after } => {
                held.push(c);
                let begun = held.trim_start();
                if begun == OPEN {
                    self.opened = true;
                    self.state = State::Inside(String::new());
                } else if !OPEN.starts_with(begun) {
                    shown.push_str(if *after { begun } else { held });
                    self.state = match c {
                        '\n' => State::Start { held: String::new(), after: false },
                        _ => State::Within,
                    };
                }
            }
        }
    }

    /// Whether the text has had reasoning with an opening tag.
    pub(crate) fn opened(&self) -> bool {
        self.opened
    }

    /// Whether the text is in the middle of reasoning.
    pub(crate) fn is_inside(&self) -> bool {
        matches!(self.state, State::Inside(_))
    }

    /// What was held back, at the end of the text.
    pub(crate) fn end(&mut self) -> String {
        match std::mem::replace(&mut self.state, State::Within) {
            State::Start { held, after: false } => held,
            State::Start { held, after: true } => held.trim_start().to_owned(),
            State::Within | State::Inside(_) => String::new(),
        }
    }
}

/// The text after a closing tag that has a line of its own and no opening one before it.
pub(crate) fn after_lone_end(text: &str) -> Option<&str> {
    let mut from = 0;
    for line in text.split_inclusive('\n') {
        from += line.len();
        if line.trim() == CLOSE {
            return Some(text[from..].trim_start());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, size: usize) -> String {
        let mut cutter = Cutter::default();
        let chars: Vec<char> = text.chars().collect();
        let mut shown: String =
            chars.chunks(size).map(|piece| cutter.read(&piece.iter().collect::<String>())).collect();
        shown += &cutter.end();
        shown
    }

    #[test]
    fn reasoning_is_cut_however_the_text_comes() {
        let cases = [
            ("<think>\n{\"useful\": true}\n</think>\n\n{\"useful\": false}", "{\"useful\": false}"),
            (" \n<think>a</think>b", "b"),
            ("Yes.\n<think>hm</think>\nNo.", "Yes.\nNo."),
            ("<think>a</think>\n<think>b</think> c", "c"),
            ("<think>never ends", ""),
            ("write `<think>` like this: <think>x</think>", "write `<think>` like this: <think>x</think>"),
            ("  <thin air", "  <thin air"),
            ("a\n\n  b\n<", "a\n\n  b\n<"),
            ("\u{fc}<think>", "\u{fc}<think>"),
            ("", ""),
        ];
        for (text, expected) in cases {
            for size in 1..=text.chars().count().max(1) {
                assert_eq!(cut(text, size), expected, "{text:?} in pieces of {size}");
            }
        }
        let long = format!("<think>{}</think>end", "\u{fc}</thinking".repeat(500));
        assert_eq!(cut(&long, 7), "end");
    }

    #[test]
    fn a_closing_tag_alone_cuts_only_on_a_line_of_its_own() {
        assert_eq!(after_lone_end("hm\n</think>\n\nyes"), Some("yes"));
        assert_eq!(after_lone_end("the tag </think> ends it"), None);
    }
}
