//! Language models: the port to whoever runs them, and what a call costs. DESIGN 12, spec/learning.md 15.
//!
//! A caller names a model as `provider/model` or by an id that a provider lists, [finds](Model::find) it, and
//! [calls](Model::call) it with a [conversation](conversation::Conversation). What is common to all providers (tries,
//! waits, limits) is behind the port; what the caller does with a refusal or a cut answer is its own.

pub mod answer;
pub mod catalogue;
pub mod conversation;
pub mod failure;
pub mod spending;

pub use answer::{Arguments, Block, Delta, Reply, Stop, ToolUse, Usage};
pub use catalogue::{Catalogue, Cost, ModelEntry, Price, Silent, Standing};
pub use conversation::{Cache, Conversation, Message, Role, Schema, Tool, ToolChoice, ToolResult};
pub use failure::{ErrorClass, Fault, ModelError};

use crate::storage::Answer;

/// Who hears an answer while it is made: called once for each piece, in order, and never after the call has ended.
pub type Hear<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// The port: all configured providers of models behind one door.
pub trait Model: Send + Sync + 'static {
    /// The models that the providers list. What was fetched is kept for some minutes, and used for longer while its
    /// provider is out of reach.
    fn catalogue(&self) -> Answer<'_, Catalogue>;

    /// The model of this name: `provider/model` of a configured provider, listed or not; or an id that a provider
    /// lists, one of the Anthropic kind first.
    ///
    /// # Errors
    /// There is none; or a bare id cannot be looked up since no provider answers.
    fn find<'a>(&'a self, name: &'a str) -> Answer<'a, Result<ModelEntry, ModelError>>;

    /// Asks a model to go on with a conversation. `hear` is told what the model says as it says it; what counts is
    /// the reply. Dropping the future drops the call.
    ///
    /// # Errors
    /// As [`ModelError`] says, after the tries of the call itself. A refusal and a cut answer are replies:
    /// [`Reply::stop`].
    fn call<'a>(
        &'a self,
        model: &'a ModelEntry,
        conversation: &'a Conversation,
        hear: Hear<'a>,
    ) -> Answer<'a, Result<Reply, ModelError>>;

    /// About how many tokens of this model so many bytes of text are: a third, corrected by what the model's last
    /// calls reported. spec/learning.md 5.
    fn estimate_tokens(&self, model: &ModelEntry, bytes: usize) -> u64;

    /// How each configured provider is, by name.
    fn standings(&self) -> Vec<Standing>;
}
