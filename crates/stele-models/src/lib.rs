//! The port [`Model`](stele_core::models::Model) on providers of models: Anthropic's Messages, and chat completions as
//! OpenAI made them and hosted services, Ollama, vLLM and llama.cpp speak them. DESIGN 12, spec/learning.md 15.
//!
//! From the outside in: [`Gateway`] finds the provider; `provider` makes the tries of a call, within its slots and
//! while it does not rest; `http` sends one request; `anthropic` and `openai` write its body and read its answer into
//! a `draft`. What a model's server cannot do is found out by its refusals (`ways`) and remembered.
//!
//! Nothing that a conversation or an answer holds is logged or kept in an error, and neither is a key.

mod anthropic;
mod breaker;
mod catalogue;
mod draft;
mod estimate;
mod gateway;
mod http;
mod openai;
mod provider;
mod retry;
mod scripted;
mod settings;
mod sse;
mod think;
mod ways;
mod wire;

pub use gateway::{BuildError, Gateway};
pub use scripted::{Asked, Rule, Scripted, Turn};
pub use settings::{Key, Kind, Patience, ProviderSettings, Structured};
