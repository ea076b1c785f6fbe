//! What the server says to a mount, and what that means: the table from failures to errnos, and catching up with the
//! store's changes.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use fuser::Errno;
use stele_client::{Applied, Change, Changes, ClientError, Edit, Failure, Told as Answer, TreeNode};
use stele_core::hash::Sha256;
use stele_core::id::{MemoryId, VersionId, base58, from_base58};
use stele_core::time::Timestamp;

use crate::shared::{Counters, Ended, Shared, State};
use crate::tree::{Head, Told};

/// Longest time for a change of the store, repeats included.
pub(crate) const WRITE: Duration = Duration::from_secs(11);
/// The same where the server is known to be away.
pub(crate) const WRITE_BLIND: Duration = Duration::from_secs(3);
/// Longest time to find out what became of a change.
const SETTLE: Duration = Duration::from_millis(2_500);
/// A server that answered so recently may be being restarted: it is asked for so long whether it is there.
const RESTART: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(5));
/// How long a server that answers with faults of its own is asked again.
const FAULTS: Duration = Duration::from_secs(3);

/// What a failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The server was too busy and did nothing: again, after so long.
    Busy(Duration),
    /// Nobody knows whether it was done: the server cannot be reached, or had a fault.
    Unclear(Cause),
    /// The memory is not what it was thought to be, or not there, or another is in the way: look, and decide anew.
    Moved,
    /// It never will be done.
    Refused(i32),
    /// The credential opens nothing any more.
    Credential,
    /// The store takes no changes any more.
    Archived,
    /// The server's disk is full.
    DiskFull,
    /// Changes cannot be told from where the mirror stands.
    Expired,
}

/// Why an outcome is unclear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// No answer, or one of somebody else.
    Away,
    /// An answer that tells of a fault.
    Fault,
}

/// What a failure means to a mirror of the database life `epoch`.
pub(crate) fn judge(failure: &Failure, epoch: &str) -> Verdict {
    let ClientError::Refused { status, code, .. } = &failure.error else {
        return Verdict::Unclear(Cause::Away);
    };
    let ours = failure.epoch.as_deref() == Some(epoch);
    match (status, code.as_str()) {
        // Only the database that the mirror began with can say that a key is none, or that something is not there.
        (401, _) if ours => Verdict::Credential,
        (401, _) => Verdict::Unclear(Cause::Away),
        (403, _) => Verdict::Refused(Errno::EACCES.code()),
        (404, _) if ours => Verdict::Moved,
        (404, _) => Verdict::Unclear(Cause::Away),
        (409, _) => Verdict::Moved,
        (410, _) => Verdict::Expired,
        (400, "memory_store_archived") => Verdict::Archived,
        (400, "memory_limit_reached" | "store_size_limit_reached" | "version_limit_reached") => {
            Verdict::Refused(Errno::ENOSPC.code())
        }
        (400, "memory_content_too_large") | (413, _) => Verdict::Refused(Errno::EFBIG.code()),
        // The mount sends nothing malformed: the store is one that people do not write to, as learned ones.
        (400, _) => Verdict::Refused(Errno::EROFS.code()),
        (_, "storage_full") => Verdict::DiskFull,
        (408 | 429 | 503 | 529, _) => {
            Verdict::Busy(failure.retry_after.unwrap_or(Duration::from_millis(250)))
        }
        (502 | 504, _) => Verdict::Unclear(Cause::Away),
        _ => Verdict::Unclear(Cause::Fault),
    }
}

impl Cause {
    fn errno(self) -> Errno {
        match self {
            Self::Away => Errno::ETIMEDOUT,
            Self::Fault => Errno::EIO,
        }
    }
}

/// Why a change was not made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unmade {
    /// What to answer, if a look at the store does not show something else.
    pub(crate) errno: Errno,
    /// Whether another try may go better after that look.
    pub(crate) again: bool,
    /// Whether a look can help at all.
    pub(crate) look: bool,
}

impl Unmade {
    fn never(errno: Errno) -> Self {
        Self { errno, again: false, look: false }
    }
}

impl Shared {
    /// Sends changes, again where nothing was done or nobody knows: all of them can be repeated without harm.
    pub(crate) fn change(
        &self,
        reason: Option<&str>,
        edits: &[Edit<'_>],
        until: Instant,
    ) -> Result<Vec<Applied>, Unmade> {
        let epoch = self.state().epoch.clone();
        let begun = Instant::now();
        let mut pause = Duration::from_millis(50);
        loop {
            let patience = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
            Counters::one(&self.count.requests);
            let failure = match self.client.changeset_once(&self.store, reason, edits, patience) {
                Ok(Answer { value, .. }) => {
                    let mut state = self.state();
                    (state.contact, state.disk_full) = (Some(Instant::now()), None);
                    return Ok(value);
                }
                Err(failure) => failure,
            };
            let verdict = judge(&failure, &epoch);
            let unmade = match verdict {
                Verdict::Busy(after) => {
                    pause = after;
                    Unmade { errno: Errno::ETIMEDOUT, again: false, look: false }
                }
                Verdict::Unclear(cause) => Unmade { errno: cause.errno(), again: false, look: true },
                Verdict::Moved | Verdict::Expired => {
                    return Err(Unmade { errno: Errno::ESTALE, again: true, look: true });
                }
                Verdict::Refused(errno) => return Err(Unmade::never(Errno::from_i32(errno))),
                Verdict::Credential => {
                    self.end(Ended::Credential);
                    return Err(Unmade::never(Errno::EACCES));
                }
                Verdict::Archived => {
                    self.state().archived = true;
                    return Err(Unmade::never(Errno::EROFS));
                }
                Verdict::DiskFull => {
                    self.state().disk_full = Some(Instant::now());
                    return Err(Unmade::never(Errno::ENOSPC));
                }
            };
            let faulty = verdict == Verdict::Unclear(Cause::Fault) && begun.elapsed() > FAULTS;
            if faulty || self.is_ending() || Instant::now() + pause >= until {
                return Err(unmade);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    /// Asks the server whether it is there and lets us in.
    pub(crate) fn probe(&self) -> Result<(), Errno> {
        let (epoch, live, after, contact) = {
            let state = self.state();
            (state.epoch.clone(), state.live, state.sequence, state.contact)
        };
        let patience = if live { WRITE } else { WRITE_BLIND };
        let restarting = contact.is_some_and(|at| at.elapsed() < RESTART.0);
        let begun = Instant::now();
        let until = begun + if restarting { RESTART.1 } else { Duration::ZERO };
        loop {
            Counters::one(&self.count.requests);
            // Of what a session's token may ask, this costs the server least.
            let failure = match self.client.changes_behind(&self.store, after, &epoch, 0, patience) {
                Ok(_) => {
                    self.state().contact = Some(Instant::now());
                    return Ok(());
                }
                Err(failure) => failure,
            };
            match judge(&failure, &epoch) {
                Verdict::Unclear(cause) if Instant::now() >= until => return Err(cause.errno()),
                Verdict::Unclear(_) => std::thread::sleep(Duration::from_millis(100)),
                // What cannot be read now could not be written either, and shells do not hear of that.
                Verdict::Busy(after) if begun.elapsed() < RESTART.1 => {
                    std::thread::sleep(after.min(Duration::from_secs(1)));
                }
                Verdict::Busy(_) => return Err(Errno::ETIMEDOUT),
                Verdict::DiskFull | Verdict::Archived | Verdict::Expired => return Ok(()),
                Verdict::Refused(errno) => return Err(Errno::from_i32(errno)),
                verdict @ (Verdict::Credential | Verdict::Moved) => {
                    self.heed(verdict);
                    return Err(self.state().check_open().err().unwrap_or(Errno::EACCES));
                }
            }
        }
    }

    /// Takes in what has changed, without waiting for more. For the lane, while nothing of its own is on its way.
    pub(crate) fn catch_up(&self) -> Result<(), Verdict> {
        let until = Instant::now() + SETTLE;
        loop {
            let (after, epoch) = {
                let state = self.state();
                (state.sequence, state.epoch.clone())
            };
            let patience = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
            Counters::one(&self.count.requests);
            let answer = self.client.changes_behind(&self.store, after, &epoch, 0, patience);
            let answer = answer.map_err(|failure| {
                let verdict = judge(&failure, &epoch);
                self.heed(verdict);
                verdict
            })?;
            let over = answer.value.data.is_empty();
            self.take_page(&mut self.state(), answer.value);
            if over {
                return Ok(());
            }
        }
    }

    /// Draws the consequences that a failure of a read has for the whole mount.
    pub(crate) fn heed(&self, verdict: Verdict) {
        match verdict {
            Verdict::Credential => self.end(Ended::Credential),
            Verdict::Moved => self.end(Ended::Deleted),
            _ => {}
        }
    }

    /// Shows nothing any more.
    pub(crate) fn end(&self, ended: Ended) {
        let mut state = self.state();
        if state.ended.is_none() {
            tracing::info!(store.id = %self.options.store, ended = ?ended, "the mount shows nothing any more");
            state.ended = Some(ended);
            state.everything_is_news();
        }
    }

    /// Takes a page of changes in, as far as it is news.
    pub(crate) fn take_page(&self, state: &mut State, page: Changes) {
        for change in page.data {
            if change.sequence <= state.sequence {
                continue;
            }
            state.sequence = change.sequence;
            match change.operation.as_str() {
                "store_archived" => state.archived = true,
                "store_deleted" => {
                    state.ended = Some(Ended::Deleted);
                    state.everything_is_news();
                }
                _ => {
                    if let Some(told) = read_change(&change) {
                        note_arrival(state, &told);
                        state.tree.told(told);
                    }
                }
            }
        }
        state.sequence = state.sequence.max(page.last_sequence);
    }

    /// Reads the whole tree and puts it in the place of what is known.
    pub(crate) fn relist(&self, patience: Duration) -> Result<(), Failure> {
        Counters::one(&self.count.requests);
        let snapshot = self.client.snapshot(&self.options.store, patience)?;
        let all: Option<Vec<_>> = snapshot.memories.into_iter().map(read_node).collect();
        let all = all.ok_or_else(|| ClientError::Strange {
            url: self.options.store.clone(),
            cause: "an id, a hash or a time in the snapshot cannot be read".into(),
        })?;
        let mut state = self.state();
        state.tree.replace(all);
        (state.sequence, state.epoch) = (snapshot.sequence, snapshot.epoch);
        state.max_memories = snapshot.max_memories.unwrap_or(u64::MAX);
        state.contact = Some(Instant::now());
        Ok(())
    }
}

/// Notes that a text that was sent has become a version.
fn note_arrival(state: &mut State, told: &Told) {
    if let (Some(sent), Some((_, head))) = (&mut state.sent, &told.now) {
        sent.arrived |= sent.memory == told.memory && sent.hash == head.hash;
    }
}

/// What an id of a memory looks like in a changeset.
pub(crate) fn spell(memory: MemoryId) -> String {
    format!("mem_01{}", base58(*memory.as_bytes()))
}

/// What an id of a version looks like in the Anthropic dialect.
pub(crate) fn spell_version(version: VersionId) -> String {
    format!("memver_01{}", base58(*version.as_bytes()))
}

pub(crate) fn read_memory(text: &str) -> Option<MemoryId> {
    from_base58(text.strip_prefix("mem_01")?).map(MemoryId::from_bytes)
}

pub(crate) fn read_version(text: &str) -> Option<VersionId> {
    from_base58(text.strip_prefix("memver_01")?).map(VersionId::from_bytes)
}

/// A time of the server's as the system has it.
pub(crate) fn system_time(at: Timestamp) -> SystemTime {
    let micros = Duration::from_micros(at.as_micros().unsigned_abs());
    if at.as_micros() < 0 { SystemTime::UNIX_EPOCH - micros } else { SystemTime::UNIX_EPOCH + micros }
}

fn read_node(node: TreeNode) -> Option<(MemoryId, String, Head)> {
    let head = Head {
        version: VersionId::parse(&node.memory_version_id)?,
        hash: Sha256::parse(&node.content_sha256).ok()?,
        size: node.content_size_bytes,
        mtime: system_time(Timestamp::parse(&node.updated_at)?),
    };
    Some((MemoryId::parse(&node.memory_id)?, node.path, head))
}

/// A change of a memory; `None` where it says nothing about one, as of what was redacted since.
fn read_change(change: &Change) -> Option<Told> {
    let memory = read_memory(change.memory_id.as_deref()?)?;
    let now = match change.operation.as_str() {
        "deleted" => None,
        "created" | "modified" => {
            let head = Head {
                version: read_version(change.memory_version_id.as_deref()?)?,
                hash: Sha256::parse(change.content_sha256.as_deref()?).ok()?,
                size: change.content_size_bytes?,
                mtime: system_time(Timestamp::parse(&change.created_at)?),
            };
            Some((change.path.clone()?, head))
        }
        _ => return None,
    };
    Some(Told { memory, now })
}

/// Begins to wait for an answer: what the feed tells of these memories and paths meanwhile waits too.
pub(crate) struct Flight<'a>(&'a Shared);

impl Shared {
    pub(crate) fn depart(
        self: &Arc<Self>,
        memories: impl IntoIterator<Item = MemoryId>,
        paths: impl IntoIterator<Item = String>,
    ) -> Flight<'_> {
        let mut state = self.state();
        while state.feed_waits {
            state.wait(Duration::from_secs(1));
        }
        state.in_flight = Some(crate::shared::InFlight {
            memories: memories.into_iter().collect(),
            paths: paths.into_iter().collect(),
        });
        Flight(self)
    }
}

impl Flight<'_> {
    /// What came of it is known to `state`, which is still locked.
    pub(crate) fn land(self, state: &mut State) {
        state.in_flight = None;
        self.0.turned.notify_all();
        std::mem::forget(self);
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.0.state().in_flight = None;
        self.0.turned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, code: &str, epoch: Option<&str>) -> Failure {
        let error = ClientError::Refused { status, code: code.into(), message: String::new() };
        Failure { error, epoch: epoch.map(str::to_owned), retry_after: None }
    }

    #[test]
    fn only_the_server_it_knows_can_say_that_something_is_gone() {
        assert_eq!(judge(&refused(404, "not_found_error", Some("e")), "e"), Verdict::Moved);
        assert_eq!(judge(&refused(401, "authentication_error", Some("e")), "e"), Verdict::Credential);
        for other in [Some("f"), None] {
            assert_eq!(
                judge(&refused(401, "authentication_error", other), "e"),
                Verdict::Unclear(Cause::Away)
            );
            assert_eq!(judge(&refused(404, "not_found_error", other), "e"), Verdict::Unclear(Cause::Away));
        }
    }

    #[test]
    fn every_failure_has_its_meaning() {
        let of = |status, code: &str| judge(&refused(status, code, Some("e")), "e");
        assert_eq!(of(400, "memory_store_archived"), Verdict::Archived);
        assert_eq!(of(400, "memory_limit_reached"), Verdict::Refused(Errno::ENOSPC.code()));
        assert_eq!(of(400, "memory_content_too_large"), Verdict::Refused(Errno::EFBIG.code()));
        assert_eq!(of(401, "authentication_error"), Verdict::Credential);
        assert_eq!(of(403, "permission_error"), Verdict::Refused(Errno::EACCES.code()));
        assert_eq!(of(409, "memory_precondition_failed_error"), Verdict::Moved);
        assert_eq!(of(410, "sequence_expired"), Verdict::Expired);
        assert_eq!(of(500, "api_error"), Verdict::Unclear(Cause::Fault));
        assert_eq!(of(503, "storage_full"), Verdict::DiskFull);
        assert_eq!(of(429, "rate_limit_error"), Verdict::Busy(Duration::from_millis(250)));
        let slow = Failure::from(ClientError::Slow { url: String::new() });
        assert_eq!(judge(&slow, "e"), Verdict::Unclear(Cause::Away));
    }
}
