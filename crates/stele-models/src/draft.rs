//! An answer while it is read, the same for both wires.

use serde_json::Value;
use stele_core::models::{Arguments, Block, Delta, Fault, Hear, Stop, ToolUse, Usage};

/// Most bytes of texts and arguments that an answer may have: many times what 128,000 tokens are.
pub(crate) const ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// Most uses of tools in one answer.
const TOOL_USES: usize = 256;

/// The answer so far. Whoever listens hears each piece as it is put in.
pub(crate) struct Draft<'a> {
    hear: Hear<'a>,
    parts: Vec<Part>,
    /// Where each use of a tool is among the parts.
    uses: Vec<usize>,
    bytes: usize,
    /// What the provider said of the tokens, so far.
    pub(crate) usage: Option<Usage>,
    /// Why it stopped; `None` while it has not.
    pub(crate) stop: Option<Stop>,
}

enum Part {
    Text(String),
    Use { id: String, name: String, json: String },
    Reasoning(Value),
}

/// A whole answer.
pub(crate) struct Said {
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: Stop,
    pub(crate) usage: Option<Usage>,
    /// Bytes of its texts and arguments.
    pub(crate) bytes: usize,
}

impl<'a> Draft<'a> {
    /// An empty answer.
    pub(crate) fn new(hear: Hear<'a>) -> Self {
        hear(Delta::Begin);
        Self { hear, parts: Vec::new(), uses: Vec::new(), bytes: 0, usage: None, stop: None }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Fault> {
        self.bytes += bytes;
        if self.bytes > ANSWER_BYTES { Err(Fault::TooLarge) } else { Ok(()) }
    }

    /// More text.
    pub(crate) fn text(&mut self, piece: &str) -> Result<(), Fault> {
        if piece.is_empty() {
            return Ok(());
        }
        self.grow(piece.len())?;
        match self.parts.last_mut() {
            Some(Part::Text(text)) => text.push_str(piece),
            _ => self.parts.push(Part::Text(piece.to_owned())),
        }
        (self.hear)(Delta::Text(piece.to_owned()));
        Ok(())
    }

    /// The model reasons, so many bytes more.
    pub(crate) fn thinks(&mut self, bytes: usize) -> Result<(), Fault> {
        self.grow(bytes)?;
        (self.hear)(Delta::Thinking);
        Ok(())
    }

    /// Reasoning that is to be sent back.
    pub(crate) fn reasoning(&mut self, block: Value) {
        self.parts.push(Part::Reasoning(block));
    }

    /// A use of a tool begins; its place among the uses.
    pub(crate) fn begin_use(&mut self, id: String, name: String) -> Result<usize, Fault> {
        self.grow(id.len() + name.len())?;
        let index = self.uses.len();
        if index == TOOL_USES {
            return Err(Fault::TooLarge);
        }
        self.uses.push(self.parts.len());
        (self.hear)(Delta::ToolUse { index, id: id.clone(), name: name.clone() });
        self.parts.push(Part::Use { id, name, json: String::new() });
        Ok(index)
    }

    /// More of a use's arguments; nothing where there is no such use.
    pub(crate) fn arguments(&mut self, index: usize, piece: &str) -> Result<(), Fault> {
        if piece.is_empty() {
            return Ok(());
        }
        self.grow(piece.len())?;
        let part = self.uses.get(index).and_then(|at| self.parts.get_mut(*at));
        if let Some(Part::Use { json, .. }) = part {
            json.push_str(piece);
            (self.hear)(Delta::Arguments { index, json: piece.to_owned() });
        }
        Ok(())
    }

    /// How many uses of tools there are.
    pub(crate) fn use_count(&self) -> usize {
        self.uses.len()
    }

    /// All text so far, to be changed: for what can only be judged at the end.
    pub(crate) fn edit_text(&mut self, edit: impl Fn(&str) -> Option<String>) {
        for part in &mut self.parts {
            if let Part::Text(text) = part
                && let Some(edited) = edit(text)
            {
                *text = edited;
            }
        }
    }

    /// The whole answer.
    ///
    /// # Errors
    /// It has not stopped: it broke off.
    pub(crate) fn end(self) -> Result<Said, Fault> {
        let stop = self.stop.ok_or(Fault::BrokenOff)?;
        let blocks: Vec<Block> = self.parts.into_iter().filter_map(block).collect();
        let uses = blocks.iter().any(|block| matches!(block, Block::ToolUse(_)));
        let stop = match stop {
            Stop::EndTurn if uses => Stop::ToolUse,
            Stop::ToolUse if !uses => Stop::EndTurn,
            stop => stop,
        };
        Ok(Said { blocks, stop, usage: self.usage, bytes: self.bytes })
    }
}

fn block(part: Part) -> Option<Block> {
    match part {
        Part::Text(text) => (!text.is_empty()).then_some(Block::Text(text)),
        Part::Reasoning(value) => Some(Block::Reasoning(value)),
        Part::Use { id, name, json } => {
            Some(Block::ToolUse(ToolUse { id, name, arguments: Arguments::parse(&json) }))
        }
    }
}
