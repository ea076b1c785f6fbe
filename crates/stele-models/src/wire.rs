//! What a wire does; there are two.

use serde_json::Value;
use stele_core::models::{Conversation, Fault};

use crate::catalogue::Listed;
use crate::draft::Draft;
use crate::settings::{Key, Kind};
use crate::ways::Ways;

/// Why an answer could not be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// For this reason.
    Fault(Fault),
    /// The provider says in the middle of a stream that it fails, as it would with this status.
    Status(u16),
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The form of requests and answers.
pub(crate) trait Wire: Send + Sync {
    /// Where calls go, below the provider's address.
    fn path(&self) -> &'static str;

    /// Where models are listed.
    fn models_path(&self) -> &'static str;

    /// The headers of each request, the key among them.
    fn headers(&self, key: Option<&Key>) -> Vec<(&'static str, String)>;

    /// The body of a call.
    fn body(&self, model: &str, conversation: &Conversation, ways: &Ways) -> Value;

    /// What reads the events of one streamed answer.
    fn events(&self) -> Box<dyn Reading>;

    /// Reads an answer that came whole.
    fn whole(&self, answer: &Value, draft: &mut Draft<'_>) -> Result<(), Broken>;

    /// Reads a page of the catalogue; the place where the next page begins, if there is one.
    fn listed(&self, page: &Value) -> Option<(Vec<Listed>, Option<String>)>;
}

/// The reading of one streamed answer.
pub(crate) trait Reading: Send {
    /// Reads the data of an event.
    fn event(&mut self, data: &[u8], draft: &mut Draft<'_>) -> Result<(), Broken>;

    /// The stream has ended.
    fn end(&mut self, draft: &mut Draft<'_>) -> Result<(), Broken>;
}

/// The wire of a kind.
pub(crate) fn of(kind: Kind) -> Box<dyn Wire> {
    match kind {
        Kind::Anthropic => Box::new(crate::anthropic::Anthropic),
        Kind::OpenAi => Box::new(crate::openai::OpenAi),
    }
}

/// A count of tokens in a JSON object.
pub(crate) fn count(usage: &Value, name: &str) -> Option<u64> {
    usage.get(name).and_then(Value::as_u64)
}
