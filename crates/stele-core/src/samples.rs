//! One of each refusal and failure, for the tests that print a dialect's whole table of errors.

use crate::access::{Forbidden, Permission, Requirement};
use crate::hash::Sha256;
use crate::id::{
    AgentId, AutomationId, EnvironmentId, KeyId, MemoryId, RunId, SessionId, StoreId, VersionId, WorkItemId,
    WorkspaceId,
};
use crate::import::Unfit;
use crate::path::MemoryPath;
use crate::refusal::Refusal;
use crate::storage::StorageError;
use crate::text::TextError;
use crate::work::item::ItemState;
use crate::work::refusal::WorkRefusal;

/// One of each refusal, and of those that a dialect may tell apart.
pub fn refusals() -> Vec<Refusal> {
    let (store, memory, version) =
        (StoreId::from_bytes([1; 16]), MemoryId::from_bytes([2; 16]), VersionId::from_bytes([3; 16]));
    let path = |text| MemoryPath::parse(text).expect("a path");
    let all = vec![
        Refusal::Forbidden(Forbidden(Requirement::Permission(Permission::Delete))),
        Refusal::shape("limit", "must be a whole number from 1 to 100"),
        Refusal::invalid("content", TextError::TooLarge { max: 102_400, actual: 102_401 }),
        Refusal::StoreNotFound(store),
        Refusal::MemoryNotFound(memory),
        Refusal::PathNotFound,
        Refusal::VersionNotFound(version),
        Refusal::KeyNotFound(KeyId::from_bytes([4; 16])),
        Refusal::AgentNotFound(AgentId::from_bytes([5; 16])),
        Refusal::WorkspaceNotFound(WorkspaceId::from_bytes([6; 16])),
        Refusal::StoreArchived(store),
        Refusal::StoreLearned(store),
        Refusal::ContentChanged { memory, actual: Sha256::of(b"") },
        Refusal::PathOccupied { wanted: path("/a/b"), by: memory, at: path("/a") },
        Refusal::MemoryLimit { limit: 10_000 },
        Refusal::StoreLimit { limit: 1_000 },
        Refusal::StoreBytesLimit { limit: 104_857_600 },
        Refusal::VersionLimit { limit: 250_000 },
        Refusal::MemoryNotFound(memory).at(3),
        Refusal::VersionIsHead(version),
        Refusal::VersionNotRestorable(version),
        Refusal::SequenceExpired(store),
        Refusal::StoreExists(store),
        Refusal::Unfit(Unfit::one("/a", "its text is not UTF-8")),
    ];
    let all: Vec<_> = all.into_iter().chain(work_refusals().into_iter().map(Refusal::Work)).collect();
    all.iter().for_each(listed);
    all
}

/// One of each refusal about agents, environments, sessions and their work.
fn work_refusals() -> Vec<WorkRefusal> {
    let (agent, environment) = (AgentId::from_bytes([5; 16]), EnvironmentId::from_bytes([7; 16]));
    let (session, item) = (SessionId::from_bytes([8; 16]), WorkItemId::from_bytes([9; 16]));
    let all = vec![
        WorkRefusal::AgentVersionNotFound { agent, version: 3 },
        WorkRefusal::EnvironmentNotFound(environment),
        WorkRefusal::EnvironmentKeyNotFound,
        WorkRefusal::ForeignEnvironment,
        WorkRefusal::SessionNotFound(session),
        WorkRefusal::ResourceNotFound,
        WorkRefusal::ThreadNotFound,
        WorkRefusal::WorkItemNotFound(item),
        WorkRefusal::AgentArchived(agent),
        WorkRefusal::EnvironmentArchived(environment),
        WorkRefusal::AgentChanged { newest: 2 },
        WorkRefusal::HostingFixed,
        WorkRefusal::SessionEnded(session),
        WorkRefusal::SessionRunning(session),
        WorkRefusal::AttachmentsFixed,
        WorkRefusal::WorkItemStopped(item),
        WorkRefusal::AutomationNotFound(AutomationId::from_bytes([10; 16])),
        WorkRefusal::RunNotFound(RunId::from_bytes([11; 16])),
        WorkRefusal::AutomationChanged { revision: 3 },
        WorkRefusal::AutomationReference { field: "agentId".into(), problem: "names no agent" },
        WorkRefusal::AutomationStore {
            field: "runDefaults.memoryStores[0].memoryStoreId".into(),
            problem: "is archived",
        },
        WorkRefusal::KeyOfAnotherRequest,
        WorkRefusal::HeartbeatMismatch { state: ItemState::Queued, last_heartbeat: None, ttl_seconds: 300 },
    ];
    for refusal in &all {
        match refusal {
            WorkRefusal::AgentVersionNotFound { .. }
            | WorkRefusal::EnvironmentNotFound(_)
            | WorkRefusal::EnvironmentKeyNotFound
            | WorkRefusal::ForeignEnvironment
            | WorkRefusal::SessionNotFound(_)
            | WorkRefusal::ResourceNotFound
            | WorkRefusal::ThreadNotFound
            | WorkRefusal::WorkItemNotFound(_)
            | WorkRefusal::AgentArchived(_)
            | WorkRefusal::EnvironmentArchived(_)
            | WorkRefusal::AgentChanged { .. }
            | WorkRefusal::HostingFixed
            | WorkRefusal::SessionEnded(_)
            | WorkRefusal::SessionRunning(_)
            | WorkRefusal::AttachmentsFixed
            | WorkRefusal::WorkItemStopped(_)
            | WorkRefusal::AutomationNotFound(_)
            | WorkRefusal::RunNotFound(_)
            | WorkRefusal::AutomationChanged { .. }
            | WorkRefusal::AutomationReference { .. }
            | WorkRefusal::AutomationStore { .. }
            | WorkRefusal::KeyOfAnotherRequest
            | WorkRefusal::HeartbeatMismatch { .. } => {}
        }
    }
    all
}

/// A variant that is not named here does not compile: name it, and add one of it above.
fn listed(refusal: &Refusal) {
    match refusal {
        Refusal::Forbidden(_)
        | Refusal::Invalid { .. }
        | Refusal::StoreNotFound(_)
        | Refusal::MemoryNotFound(_)
        | Refusal::PathNotFound
        | Refusal::VersionNotFound(_)
        | Refusal::KeyNotFound(_)
        | Refusal::AgentNotFound(_)
        | Refusal::WorkspaceNotFound(_)
        | Refusal::StoreArchived(_)
        | Refusal::StoreLearned(_)
        | Refusal::ContentChanged { .. }
        | Refusal::PathOccupied { .. }
        | Refusal::MemoryLimit { .. }
        | Refusal::StoreLimit { .. }
        | Refusal::StoreBytesLimit { .. }
        | Refusal::VersionLimit { .. }
        | Refusal::InChangeset { .. }
        | Refusal::VersionIsHead(_)
        | Refusal::VersionNotRestorable(_)
        | Refusal::SequenceExpired(_)
        | Refusal::StoreExists(_)
        | Refusal::Unfit(_)
        | Refusal::Work(_) => {}
    }
}

/// One of each failure of the storage.
pub fn failures() -> Vec<StorageError> {
    let all = vec![
        StorageError::Overloaded,
        StorageError::RedactionPending,
        StorageError::Restoring { store: StoreId::from_bytes([1; 16]), secs: 42 },
        StorageError::Full,
        StorageError::Unavailable(None),
        StorageError::Corrupt("v of memory m".into()),
        StorageError::Internal("cause".into()),
    ];
    for failure in &all {
        match failure {
            StorageError::Overloaded
            | StorageError::RedactionPending
            | StorageError::Restoring { .. }
            | StorageError::Full
            | StorageError::Unavailable(_)
            | StorageError::Corrupt(_)
            | StorageError::Internal(_) => {}
        }
    }
    all
}
