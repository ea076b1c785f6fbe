//! Changesets: several changes of memories with one author and one reason, all or nothing. DESIGN 2 and 7.

use crate::command::Command;
use crate::decide::{Decision, Outcome, Write};
use crate::id::{MemoryId, VersionId};
use crate::path::MemoryPath;
use crate::refusal::Refusal;
use crate::text::Reason;

/// Most changes of a changeset.
pub const MAX_CHANGES: usize = 1_000;
/// Most bytes of its contents together.
pub const MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Changes of memories of one store, in order, with the reason that history keeps with each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changeset {
    reason: Option<Reason>,
    commands: Vec<Command>,
}

impl Changeset {
    /// A changeset of these commands, all of them about memories: creations, updates and deletions.
    ///
    /// # Errors
    /// None or too many changes, or too many bytes.
    ///
    /// # Panics
    /// A command is about a store or a version.
    pub fn new(reason: Option<Reason>, commands: Vec<Command>) -> Result<Self, Refusal> {
        if commands.is_empty() || commands.len() > MAX_CHANGES {
            let text = format!("must hold 1 to {MAX_CHANGES} changes; there are {}", commands.len());
            return Err(Refusal::shape("changes", text));
        }
        let bytes: u64 =
            commands.iter().filter_map(Command::content).map(crate::text::Content::size_bytes).sum();
        if bytes > MAX_BYTES {
            return Err(Refusal::shape(
                "changes",
                format!(
                    "contents have {bytes} bytes together, at most {MAX_BYTES} are taken: split the changeset"
                ),
            ));
        }
        let about_memories = |command: &Command| {
            matches!(
                command,
                Command::CreateMemory { .. } | Command::UpdateMemory { .. } | Command::DeleteMemory { .. }
            )
        };
        assert!(commands.iter().all(about_memories), "a changeset changes memories");
        Ok(Self { reason, commands })
    }

    /// Why.
    pub fn reason(&self) -> Option<&Reason> {
        self.reason.as_ref()
    }

    /// The changes.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }
}

/// What became of one change of a changeset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The memory.
    pub memory: MemoryId,
    /// The version that the change wrote; `None` where it changed nothing.
    pub version: Option<VersionId>,
    /// The memory's path afterwards; of a deletion the last one.
    pub path: MemoryPath,
}

impl Applied {
    /// What a decision on a change of a memory comes to.
    ///
    /// # Panics
    /// The decision is about a store or a version.
    pub fn of(decision: &Decision) -> Self {
        let written = decision.writes.iter().find_map(|write| match write {
            Write::AppendVersion(new) => Some(&new.version),
            _ => None,
        });
        match (written, &decision.outcome) {
            (Some(version), _) => {
                let path = version.path.clone().expect("a new version has its path");
                Self { memory: version.memory, version: Some(version.id), path }
            }
            (None, Outcome::Memory(current)) => {
                Self { memory: current.memory.id, version: None, path: current.memory.path.clone() }
            }
            (None, _) => unreachable!("a change of a memory writes a version or leaves the memory as it is"),
        }
    }
}
