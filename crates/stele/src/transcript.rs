//! Transcripts of agents that run elsewhere, read line by line and told as events. spec/anthropic.md 8.1 and 17.2.
//!
//! Each event gets an id that depends on the transcript alone, so that who reads it again knows what was sent already.
//! What cannot be told is left out and counted, never dropped in silence.

mod claude_code;
mod codex;
mod content;
mod jsonl;
mod lines;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::io::BufRead;

use serde_json::{Map, Value, json};

use crate::failure::{Class, fail};
use crate::output::{cell, count};
use lines::{Line, Lines};

/// Most kinds of unknown lines that are told apart.
const KINDS: usize = 12;

/// Whose transcript it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Claude Code: `~/.claude/projects/*/*.jsonl`.
    ClaudeCode,
    /// Codex: `~/.codex/sessions/**/rollout-*.jsonl`.
    Codex,
    /// One event or chat message a line.
    Jsonl,
}

impl Format {
    /// Its name, which the agent of its sessions has too unless another is given.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Jsonl => "jsonl",
        }
    }

    fn teller(self) -> Box<dyn Tell> {
        match self {
            Self::ClaudeCode => Box::<claude_code::ClaudeCode>::default(),
            Self::Codex => Box::<codex::Codex>::default(),
            Self::Jsonl => Box::<jsonl::Jsonl>::default(),
        }
    }
}

/// What a transcript says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct About {
    /// The id of its session, where it runs.
    pub(crate) id: Option<String>,
    /// What it is about, as its agent says.
    pub(crate) title: Option<String>,
    /// What it began with, as a person said.
    pub(crate) opening: Option<String>,
    /// The model, the newest one.
    pub(crate) model: Option<String>,
    /// The directory it ran in.
    pub(crate) directory: Option<String>,
    /// The branch there.
    pub(crate) branch: Option<String>,
    /// The version of the program that wrote it, the newest one.
    pub(crate) version: Option<String>,
    /// A version that this one of Stele does not know.
    pub(crate) strange_version: Option<String>,
    /// The time of the first line that has one.
    pub(crate) began_at: Option<String>,
}

/// Keeps the first.
fn keep(kept: &mut Option<String>, value: Option<&str>) {
    if kept.is_none() {
        *kept = value.filter(|text| !text.is_empty()).map(str::to_owned);
    }
}

/// Keeps the newest.
fn renew(kept: &mut Option<String>, value: Option<&str>) {
    if let Some(value) = value.filter(|text| !text.is_empty()) {
        *kept = Some(value.to_owned());
    }
}

/// What became of a line.
#[derive(Debug, PartialEq)]
enum Told {
    /// It was told, or says only what the transcript is.
    Yes,
    /// It was left out on purpose.
    LeftOut(&'static str),
    /// It is of a kind that is not known.
    Unknown(String),
}

/// How the lines of one kind of transcript are told.
trait Tell {
    /// Tells a line: pushes its events, each with an id, and notes what it says of the transcript.
    fn tell(
        &mut self,
        number: u64,
        line: &Map<String, Value>,
        about: &mut About,
        events: &mut Vec<Value>,
    ) -> Told;

    /// Tells what could only be known behind the last line.
    fn end(&mut self, _events: &mut Vec<Value>) {}
}

/// What was found in a transcript, and what was left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Events.
    pub(crate) events: usize,
    /// Lines left out, by why.
    pub(crate) left_out: BTreeMap<String, usize>,
    /// Lines that are no JSON objects or too long.
    pub(crate) damaged: usize,
    /// The first of them.
    pub(crate) first_damaged: Option<u64>,
    /// Texts that were shortened, or replaced by a word on what they were.
    pub(crate) cut: usize,
    /// The last line is not whole: it is still being written, or its writer crashed.
    pub(crate) cut_off: bool,
}

impl Tally {
    fn leave_out(&mut self, why: &str) {
        let known = self.left_out.len() < KINDS || self.left_out.contains_key(why);
        let why = if known { why } else { "of further unknown kinds" };
        *self.left_out.entry(why.to_owned()).or_default() += 1;
    }

    /// What was left out, in words; `None` where it was nothing.
    pub(crate) fn missing(&self) -> Option<String> {
        let mut parts: Vec<String> = self
            .left_out
            .iter()
            .map(|(why, lines)| format!("{} {why}", count(*lines, "line", "lines")))
            .collect();
        match self.first_damaged {
            Some(line) if self.damaged == 1 => parts.push(format!("1 damaged line (line {line})")),
            Some(first) => parts.push(format!("{} damaged lines (the first is line {first})", self.damaged)),
            None => {}
        }
        if self.cut > 0 {
            parts.push(format!("parts of {}", count(self.cut, "event", "events")));
        }
        if self.cut_off {
            parts.push("the last line, which is not whole".into());
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "lines": self.left_out, "damaged_lines": self.damaged, "first_damaged_line": self.first_damaged,
            "shortened_events": self.cut, "last_line_cut_off": self.cut_off,
        })
    }
}

/// Reads a transcript to its end and hands each event to `take`.
///
/// # Errors
/// It cannot be read, or `take` fails.
pub(crate) fn read(
    format: Format,
    input: impl BufRead,
    mut take: impl FnMut(Value) -> anyhow::Result<()>,
) -> anyhow::Result<(About, Tally)> {
    let (mut about, mut tally) = (About::default(), Tally::default());
    let mut teller = format.teller();
    let mut ids = Ids::default();
    let mut events = Vec::new();
    let mut lines = Lines::new(input);
    while let Some((number, line)) = lines.next()? {
        let parsed = match &line {
            Line::Whole(text) | Line::Last(text) if text.trim_ascii().is_empty() => continue,
            Line::Whole(text) | Line::Last(text) => serde_json::from_slice::<Map<String, Value>>(text).ok(),
            Line::TooLong => None,
        };
        let Some(parsed) = parsed else {
            if matches!(line, Line::Last(_)) {
                tally.cut_off = true;
            } else {
                tally.damaged += 1;
                tally.first_damaged.get_or_insert(number);
            }
            continue;
        };
        match teller.tell(number, &parsed, &mut about, &mut events) {
            Told::Yes => {}
            Told::LeftOut(why) => tally.leave_out(why),
            Told::Unknown(kind) => {
                let kind: String = kind.chars().take(40).collect();
                tally.leave_out(&format!("of the unknown kind {:?}", cell(&kind)));
            }
        }
        hand_over(&mut events, &mut ids, &mut tally, &mut take)?;
    }
    teller.end(&mut events);
    hand_over(&mut events, &mut ids, &mut tally, &mut take)?;
    Ok((about, tally))
}

fn hand_over(
    events: &mut Vec<Value>,
    ids: &mut Ids,
    tally: &mut Tally,
    take: &mut impl FnMut(Value) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for mut event in events.drain(..) {
        if !ids.make_own(&mut event) {
            tally.leave_out("of events that are there twice");
            continue;
        }
        tally.events += 1;
        tally.cut += usize::from(content::fit(&mut event));
        take(event)?;
    }
    Ok(())
}

/// The ids so far, each with a fingerprint of every event that came with it.
#[derive(Default)]
struct Ids(HashMap<String, Vec<u64>>);

impl Ids {
    /// Gives an event an id of its own where another event has it: some programs number the uses of tools anew in each
    /// turn. False where the same event was there before, as after a conversation was copied.
    fn make_own(&mut self, event: &mut Value) -> bool {
        let mut hasher = DefaultHasher::new();
        event.to_string().hash(&mut hasher);
        let print = hasher.finish();
        let id = event["id"].as_str().unwrap_or_default().to_owned();
        let prints = self.0.entry(id.clone()).or_default();
        if prints.contains(&print) {
            return false;
        }
        prints.push(print);
        if prints.len() > 1 {
            event["id"] = format!("{id}~{}", prints.len()).into();
        }
        true
    }
}

/// The refusal of a file in which nothing is what it should be.
pub(crate) fn nothing_in(format: Format, file: &str, tally: &Tally) -> anyhow::Error {
    let found = tally.missing().map(|missing| format!(": found {missing}")).unwrap_or_default();
    let name = format.name();
    fail(Class::Refused, format!("{file} holds no message that is told as {name}{found}. Nothing was sent"))
}

/// An event.
fn event(id: impl Into<String>, kind: &str, at: Option<&str>, mut fields: Value) -> Value {
    fields["id"] = id.into().chars().take(200).collect::<String>().into();
    fields["type"] = kind.into();
    if let Some(at) = at.filter(|at| at.parse::<jiff::Timestamp>().is_ok()) {
        fields["processed_at"] = at.into();
    }
    fields
}

fn text<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    object.get(name).and_then(Value::as_str)
}

/// Whether a version is beyond the newest major one that is known. Test builds have all kinds of names.
fn is_beyond(version: &str, known: u32) -> bool {
    let major = version.trim_start_matches('v').split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major > known)
}

/// The server and tool in the name that a tool of an MCP server has: `mcp__server__tool`.
fn mcp_tool(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once("__")
}

/// The use of a tool, by its own id: the result names it.
fn tool_use(id: String, at: Option<&str>, name: &str, input: Value) -> Value {
    match mcp_tool(name) {
        Some((server, tool)) => {
            let fields = json!({"mcp_server_name": server, "name": tool, "input": input});
            event(id, "agent.mcp_tool_use", at, fields)
        }
        None => event(id, "agent.tool_use", at, json!({"name": name, "input": input})),
    }
}

/// The kind of a result, and the field in which it names the use.
fn result_kind(of_mcp: bool) -> (&'static str, &'static str) {
    if of_mcp { ("agent.mcp_tool_result", "mcp_tool_use_id") } else { ("agent.tool_result", "tool_use_id") }
}

#[cfg(test)]
mod tests;
