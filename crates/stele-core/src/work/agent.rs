//! Agents: who runs. A definition with versions. spec/anthropic.md 10, spec/recursion.md 10.2.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hash::Sha256;
use crate::id::{AgentId, AgentVersionId, StoreId};
use crate::records::{Kind, RecordId, Tag};
use crate::refusal::Refusal;
use crate::text::{Metadata, MetadataPatch};
use crate::time::Timestamp;
use crate::work::document::{Document, kind};
use crate::work::{Dialect, Fields};

/// The metadata of an agent made through Anthropic that gives it a learned store when it is `on`.
/// spec/recursion.md 16.4.
pub const LEARNED: &str = "stele.learned";

/// What an agent is: all that a version holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// The model, as it was named.
    pub model: String,
    /// What Anthropic says of the model beside its id: speed, effort and the like.
    #[serde(default)]
    pub model_options: Fields,
    /// The system prompt.
    pub system: Option<String>,
    /// Tools, as Anthropic spells them.
    #[serde(default)]
    pub tools: Vec<Value>,
    /// MCP servers.
    #[serde(default)]
    pub mcp_servers: Vec<Value>,
    /// Skills.
    #[serde(default)]
    pub skills: Vec<Value>,
    /// Other agents that it may call.
    #[serde(default)]
    pub multiagent: Option<Value>,
    /// Free pairs.
    #[serde(default)]
    pub metadata: Metadata,
    /// What only Recursion knows, kept as it was sent.
    #[serde(default)]
    pub extra: Fields,
}

/// A change of a definition: `None` keeps a part, lists replace, metadata are patched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DefinitionPatch {
    /// New name.
    pub name: Option<String>,
    /// New description.
    pub description: Option<Option<String>>,
    /// New model, with what is said of it beside its id.
    pub model: Option<(String, Fields)>,
    /// New system prompt.
    pub system: Option<Option<String>>,
    /// New tools.
    pub tools: Option<Vec<Value>>,
    /// New MCP servers.
    pub mcp_servers: Option<Vec<Value>>,
    /// New skills.
    pub skills: Option<Vec<Value>>,
    /// New agents to call.
    pub multiagent: Option<Option<Value>>,
    /// Change of the metadata.
    pub metadata: MetadataPatch,
    /// New fields that only Recursion knows.
    pub extra: Option<Fields>,
}

impl DefinitionPatch {
    /// The definition after the change.
    ///
    /// # Errors
    /// Too many pairs of metadata.
    pub fn apply(&self, to: &Definition) -> Result<Definition, Refusal> {
        let to = to.clone();
        let patch = self.clone();
        let metadata = to.metadata.patched(&self.metadata);
        let (model, model_options) = patch.model.unwrap_or((to.model, to.model_options));
        Ok(Definition {
            name: patch.name.unwrap_or(to.name),
            description: patch.description.unwrap_or(to.description),
            model,
            model_options,
            system: patch.system.unwrap_or(to.system),
            tools: patch.tools.unwrap_or(to.tools),
            mcp_servers: patch.mcp_servers.unwrap_or(to.mcp_servers),
            skills: patch.skills.unwrap_or(to.skills),
            multiagent: patch.multiagent.unwrap_or(to.multiagent),
            metadata: metadata.map_err(|error| Refusal::invalid("metadata", error))?,
            extra: patch.extra.unwrap_or(to.extra),
        })
    }
}

/// An agent, with its newest version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// The dialect that it was made through: an agent of Recursion's has a learned store whatever its metadata say.
    pub made_through: Dialect,
    /// The number of its newest version, from 1.
    pub version: u32,
    /// The id of that version.
    pub version_id: AgentVersionId,
    /// The definition in that version.
    pub definition: Definition,
    /// Its learned store, once its first session has started.
    pub learned_store: Option<StoreId>,
    /// The model that its memory is learned with, where it is not the agent's own. spec/recursion.md 8.5.
    #[serde(default)]
    pub memory_model: Option<String>,
    /// Tags, as Recursion knows them.
    #[serde(default)]
    pub labels: Vec<Value>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was archived: no new sessions, no changes.
    pub archived_at: Option<Timestamp>,
    /// When it was deleted through Recursion: no dialect shows it, its learned store and its sessions stay.
    pub deleted_at: Option<Timestamp>,
}

impl Agent {
    /// Whether it has a learned store, which each of its sessions gets. spec/recursion.md 8.1 and 16.4.
    pub fn learns(&self) -> bool {
        match self.made_through {
            Dialect::Recursion => true,
            Dialect::Anthropic => {
                self.definition.metadata.pairs().get(LEARNED).is_some_and(|value| value == "on")
            }
        }
    }

    /// The model that its memory is learned with.
    pub fn effective_memory_model(&self) -> &str {
        self.memory_model.as_deref().unwrap_or(&self.definition.model)
    }

    /// Its newest version as a document.
    pub fn newest_version(&self) -> AgentVersion {
        AgentVersion {
            id: self.version_id,
            agent: self.id,
            version: self.version,
            definition: self.definition.clone(),
            created_at: self.updated_at,
        }
    }

    /// What a session keeps of it.
    pub fn snapshot(&self) -> AgentSnapshot {
        self.newest_version().snapshot()
    }
}

/// One version of an agent. Never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentVersion {
    /// Its id.
    pub id: AgentVersionId,
    /// The agent.
    pub agent: AgentId,
    /// Its number, from 1.
    pub version: u32,
    /// The definition.
    pub definition: Definition,
    /// When it was made.
    pub created_at: Timestamp,
}

impl AgentVersion {
    /// What the version with this number of this agent is found by.
    pub fn key_of(agent: AgentId, version: u32) -> [u8; 32] {
        let number = version.to_be_bytes();
        *Sha256::of(&[&b"agent version"[..], agent.as_bytes(), &number].concat()).as_bytes()
    }

    /// What a session keeps of it.
    pub fn snapshot(&self) -> AgentSnapshot {
        AgentSnapshot {
            id: self.agent,
            version: self.version,
            version_id: self.id,
            definition: self.definition.clone(),
        }
    }
}

/// An agent as it was when a session began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSnapshot {
    /// The agent.
    pub id: AgentId,
    /// The number of the version.
    pub version: u32,
    /// The id of the version.
    pub version_id: AgentVersionId,
    /// The definition, with what the session overrides.
    pub definition: Definition,
}

/// Agents that no list hides.
const SHOWN: u16 = 1;
/// Agents that are not archived either.
const OPEN: u16 = 2;
/// Versions of an agent.
const OF_AGENT: u16 = 1;

/// The tag of the agents that a list shows.
pub fn listed(include_archived: bool) -> Tag {
    Tag { name: if include_archived { SHOWN } else { OPEN }, value: Vec::new() }
}

/// The tag of an agent's versions.
pub fn versions_of(agent: AgentId) -> Tag {
    Tag { name: OF_AGENT, value: agent.as_bytes().to_vec() }
}

impl Document for Agent {
    const KIND: Kind = kind::AGENT;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        match (self.deleted_at, self.archived_at) {
            (Some(_), _) => Vec::new(),
            (None, Some(_)) => vec![listed(true)],
            (None, None) => vec![listed(true), listed(false)],
        }
    }
}

impl Document for AgentVersion {
    const KIND: Kind = kind::AGENT_VERSION;

    fn record_id(&self) -> RecordId {
        *self.id.as_bytes()
    }

    fn created_at(&self) -> Timestamp {
        self.created_at
    }

    fn tags(&self) -> Vec<Tag> {
        vec![versions_of(self.agent)]
    }

    fn key(&self) -> Option<[u8; 32]> {
        Some(Self::key_of(self.agent, self.version))
    }
}
