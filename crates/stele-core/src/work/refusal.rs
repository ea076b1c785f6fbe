//! Why something about agents, environments, sessions or their work is refused.

use crate::id::{AgentId, AutomationId, EnvironmentId, RunId, SessionId, WorkItemId};
use crate::work::item::ItemState;

/// A request that is refused; nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkRefusal {
    /// The agent has no such version.
    #[error("the agent has no version {version}")]
    AgentVersionNotFound {
        /// The agent.
        agent: AgentId,
        /// The number asked for.
        version: u32,
    },
    /// No such environment in the caller's workspace.
    #[error("environment not found")]
    EnvironmentNotFound(EnvironmentId),
    /// The environment has no such key.
    #[error("environment key not found")]
    EnvironmentKeyNotFound,
    /// The key is one of another environment.
    #[error("this is the key of another environment")]
    ForeignEnvironment,
    /// No such session in the caller's workspace, or none that the caller's token reaches.
    #[error("session not found")]
    SessionNotFound(SessionId),
    /// The session has no such file, repository or store.
    #[error("session resource not found")]
    ResourceNotFound,
    /// The session has no such thread.
    #[error("session thread not found")]
    ThreadNotFound,
    /// The environment's queue has no such item.
    #[error("work item not found")]
    WorkItemNotFound(WorkItemId),
    /// The agent is archived.
    #[error("the agent is archived: it starts no sessions and takes no changes")]
    AgentArchived(AgentId),
    /// The environment is archived.
    #[error("the environment is archived: it takes no sessions and no changes")]
    EnvironmentArchived(EnvironmentId),
    /// The agent has another version than the caller has read.
    #[error("the agent has changed: its newest version is {newest}; read it and try again")]
    AgentChanged {
        /// Its newest version.
        newest: u32,
    },
    /// An environment's kind is fixed.
    #[error("config.type cannot change: make another environment")]
    HostingFixed,
    /// The session has ended.
    #[error("the session has ended and takes no more events or changes")]
    SessionEnded(SessionId),
    /// The session is running.
    #[error("the session is running: interrupt it first, and wait until it is idle")]
    SessionRunning(SessionId),
    /// What is attached when a session begins stays so.
    #[error("memory stores are attached when a session is made; none is added, changed or removed later")]
    AttachmentsFixed,
    /// The item was stopped.
    #[error("the work item is stopped")]
    WorkItemStopped(WorkItemId),
    /// No such automation in the caller's workspace.
    #[error("automation not found")]
    AutomationNotFound(AutomationId),
    /// No such run of an automation in the caller's workspace.
    #[error("automation run not found")]
    RunNotFound(RunId),
    /// The automation is not as the caller read it.
    #[error("the automation has changed: its revision is {revision}; read it and try again")]
    AutomationChanged {
        /// Its revision.
        revision: u64,
    },
    /// An automation names an agent, version or environment that no session could have.
    #[error("{field}: {problem}")]
    AutomationReference {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// An automation names a store that its sessions could not have.
    #[error("{field}: {problem}")]
    AutomationStore {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The idempotency key stands for another request.
    #[error("this Idempotency-Key was used for another request: use a new one")]
    KeyOfAnotherRequest,
    /// The heartbeat does not come from the one who holds the item.
    #[error("expected_last_heartbeat does not match: the item is {} and another worker may hold it", .state.as_str())]
    HeartbeatMismatch {
        /// The item's state.
        state: ItemState,
        /// Its last heartbeat, as it was answered.
        last_heartbeat: Option<String>,
        /// How long a lease lasts.
        ttl_seconds: u64,
    },
}
