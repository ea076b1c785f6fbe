//! Names that are never synced in either direction.

/// Where this folder's own things lie, in the folder.
pub(crate) const OWN: &str = ".stele-sync";
/// The official worker's marker. spec/anthropic.md 13.
const WORKER: &str = ".anthropic-memory-store";

/// Whether a name, of a file or directory, is ours, the worker's or git's.
pub(crate) fn is_reserved(name: &str) -> bool {
    [OWN, WORKER, ".git"].contains(&name)
}
