//! A model that says what a script tells it to: for tests of what drives models.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stele_core::models::{
    Arguments, Block, Catalogue, Conversation, Delta, Hear, Model, ModelEntry, ModelError, Reply, Standing,
    Stop, ToolUse, Usage,
};
use stele_core::storage::Answer;
use tokio::time::sleep;

const PROVIDER: &str = "scripted";
/// Characters of a streamed piece.
const PIECE: usize = 16;

/// What the model does once.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    /// It says this, piece by piece.
    Say {
        /// Text and uses of tools.
        blocks: Vec<Block>,
        /// Why it stops.
        stop: Stop,
        /// The tokens that it reports.
        usage: Usage,
    },
    /// It fails.
    Fail(ModelError),
    /// It never answers.
    Hang,
}

impl Turn {
    /// It says a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::say(vec![Block::Text(text.into())], Stop::EndTurn)
    }

    /// It uses a tool.
    pub fn tool(id: &str, name: &str, arguments: &serde_json::Value) -> Self {
        let arguments = Arguments::parse(&arguments.to_string());
        let used = ToolUse { id: id.into(), name: name.into(), arguments };
        Self::say(vec![Block::ToolUse(used)], Stop::ToolUse)
    }

    fn say(blocks: Vec<Block>, stop: Stop) -> Self {
        Self::Say { blocks, stop, usage: Usage { input: 11, output: 3, ..Usage::default() } }
    }
}

/// When the model does what.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Texts that must all be in the conversation.
    pub matches: Vec<String>,
    /// How often it applies; `None`: always.
    pub times: Option<usize>,
    /// The time that it takes before its first word.
    pub delay: Duration,
    /// What it does.
    pub turn: Turn,
}

impl Rule {
    /// Once, for whatever is asked.
    pub fn once(turn: Turn) -> Self {
        Self { matches: Vec::new(), times: Some(1), delay: Duration::ZERO, turn }
    }
}

/// A call that the model got.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The id of the model.
    pub model: String,
    /// What it was asked.
    pub conversation: Conversation,
}

/// The model. The first rule that applies is used; without one it says nothing and ends its turn.
#[derive(Debug, Default)]
pub struct Scripted {
    script: Mutex<Script>,
}

#[derive(Debug, Default)]
struct Script {
    rules: VecDeque<Rule>,
    log: Vec<Asked>,
}

impl Scripted {
    /// A model with these rules.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Self {
        Self { script: Mutex::new(Script { rules: rules.into_iter().collect(), log: Vec::new() }) }
    }

    /// Adds a rule behind the others.
    pub fn add(&self, rule: Rule) {
        self.script().rules.push_back(rule);
    }

    /// All calls so far.
    pub fn log(&self) -> Vec<Asked> {
        self.script().log.clone()
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, model: &str, conversation: &Conversation) -> Option<Rule> {
        let mut script = self.script();
        script.log.push(Asked { model: model.to_owned(), conversation: conversation.clone() });
        let texts = texts(conversation);
        let applies = |rule: &Rule| rule.matches.iter().all(|part| texts.contains(part.as_str()));
        let at = script.rules.iter().position(applies)?;
        let rule = &mut script.rules[at];
        let taken = rule.clone();
        if let Some(times) = &mut rule.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                script.rules.remove(at);
            }
        }
        Some(taken)
    }

    fn entry(id: &str) -> ModelEntry {
        ModelEntry {
            provider: PROVIDER.into(),
            id: id.into(),
            display_name: id.into(),
            context_tokens: 131_072,
            output_tokens: None,
            tools: true,
            price: None,
        }
    }
}

/// All that the model is told, for matching.
fn texts(conversation: &Conversation) -> String {
    let mut texts = conversation.system.clone();
    for block in conversation.messages.iter().flat_map(|message| &message.blocks) {
        texts.push('\n');
        match block {
            Block::Text(text) => texts.push_str(text),
            Block::ToolResult(result) => texts.push_str(&result.text),
            Block::ToolUse(used) => texts.push_str(&used.name),
            Block::Reasoning(_) => {}
        }
    }
    texts
}

fn say(blocks: &[Block], hear: Hear<'_>) {
    let pieces = |text: &str| -> Vec<String> {
        let chars: Vec<char> = text.chars().collect();
        chars.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
    };
    hear(Delta::Begin);
    let mut index = 0;
    for block in blocks {
        match block {
            Block::Text(text) => pieces(text).into_iter().for_each(|piece| hear(Delta::Text(piece))),
            Block::ToolUse(used) => {
                hear(Delta::ToolUse { index, id: used.id.clone(), name: used.name.clone() });
                let json = match &used.arguments {
                    Arguments::Object(object) => serde_json::Value::Object(object.clone()).to_string(),
                    Arguments::Malformed(text) => text.clone(),
                };
                pieces(&json).into_iter().for_each(|json| hear(Delta::Arguments { index, json }));
                index += 1;
            }
            Block::ToolResult(_) | Block::Reasoning(_) => {}
        }
    }
}

impl Model for Scripted {
    fn catalogue(&self) -> Answer<'_, Catalogue> {
        let models = ["scripted-1", "scripted-2"].map(Self::entry).to_vec();
        Box::pin(async { Catalogue { models, silent: Vec::new() } })
    }

    fn find<'a>(&'a self, name: &'a str) -> Answer<'a, Result<ModelEntry, ModelError>> {
        let id = name.strip_prefix("scripted/").unwrap_or(name);
        let known = matches!(id, "scripted-1" | "scripted-2");
        let found = known.then(|| Self::entry(id));
        Box::pin(async move { found.ok_or_else(|| ModelError::UnknownModel { name: name.to_owned() }) })
    }

    fn call<'a>(
        &'a self,
        model: &'a ModelEntry,
        conversation: &'a Conversation,
        hear: Hear<'a>,
    ) -> Answer<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let rule = self.take(&model.id, conversation);
            let rule = rule.unwrap_or_else(|| Rule::once(Turn::say(Vec::new(), Stop::EndTurn)));
            sleep(rule.delay).await;
            match rule.turn {
                Turn::Hang => std::future::pending().await,
                Turn::Fail(error) => Err(error),
                Turn::Say { blocks, stop, usage } => {
                    say(&blocks, hear);
                    Ok(Reply {
                        blocks,
                        stop,
                        provider: PROVIDER.into(),
                        model: model.id.clone(),
                        usage,
                        cost: model.price.map(|price| price.of(&usage)),
                        latency: rule.delay,
                        tries: 1,
                    })
                }
            }
        })
    }

    fn estimate_tokens(&self, _model: &ModelEntry, bytes: usize) -> u64 {
        bytes.div_ceil(3) as u64
    }

    fn standings(&self) -> Vec<Standing> {
        vec![Standing { provider: PROVIDER.into(), kind: PROVIDER, rests_secs: None }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stele_core::models::Message;

    async fn call(model: &Scripted, text: &str) -> (Result<Reply, ModelError>, Vec<Delta>) {
        let entry = model.find("scripted/scripted-1").await.expect("it is there");
        let asked = Conversation { messages: vec![Message::user(text)], ..Conversation::default() };
        let mut heard = Vec::new();
        let mut hear = |delta| heard.push(delta);
        let called = model.call(&entry, &asked, &mut hear).await;
        (called, heard)
    }

    #[tokio::test]
    async fn the_first_rule_that_applies_is_used_as_often_as_it_says() {
        let tool = Turn::tool("t1", "read", &serde_json::json!({"path": "/a-long-enough-path"}));
        let model = Scripted::new([
            Rule { matches: vec!["tool".into()], ..Rule::once(tool) },
            Rule { times: Some(2), ..Rule::once(Turn::text("a text of more than a piece")) },
        ]);
        model.add(Rule::once(Turn::Fail(ModelError::Refused { provider: PROVIDER.into() })));
        let (reply, heard) = call(&model, "hello").await;
        assert_eq!(reply.expect("a reply").text(), "a text of more than a piece");
        let pieces = ["a text of more t", "han a piece"].map(|piece| Delta::Text(piece.into()));
        assert_eq!((&heard[0], &heard[1..]), (&Delta::Begin, &pieces[..]));
        let (reply, heard) = call(&model, "use a tool").await;
        let reply = reply.expect("a reply");
        assert_eq!((reply.stop, reply.tool_uses().count()), (Stop::ToolUse, 1));
        let json: String = heard
            .iter()
            .filter_map(|delta| match delta {
                Delta::Arguments { index: 0, json } => Some(json.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(Arguments::parse(&json), reply.tool_uses().next().expect("one").arguments);
        call(&model, "use a tool").await.0.expect("the second of two texts");
        assert!(matches!(call(&model, "hello").await.0, Err(ModelError::Refused { .. })));
        let silent = call(&model, "hello").await.0.expect("it says nothing");
        assert_eq!((silent.blocks.len(), silent.stop), (0, Stop::EndTurn));
        assert_eq!(model.log().len(), 5);
        assert!(model.find("other").await.is_err());
    }
}
