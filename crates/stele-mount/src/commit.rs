//! Drafts become versions. All of this runs on the lane, one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fuser::Errno;
use stele_client::Edit;
use stele_core::hash::Sha256;
use stele_core::id::MemoryId;

use crate::draft::{self, Shape};
use crate::names;
use crate::server::{self, Unmade, WRITE, WRITE_BLIND, spell, spell_version};
use crate::shared::{Counters, Sent, Shared, State};
use crate::tree::{self, Head, Ino, errno_of};

/// How long a temporary file may lie around before it becomes a memory.
const LEFT: Duration = Duration::from_secs(30);

/// What a commit is to do.
enum Plan {
    /// Nothing, or nothing more.
    Done,
    /// What was appended goes behind another text first.
    Rebase { from: usize, head: Head },
    /// A new memory.
    Create { path: String, text: String, edition: u64 },
    /// A new text of a memory.
    Update { memory: MemoryId, known: Option<Head>, text: String, edition: u64, reason: Option<String> },
}

impl Shared {
    /// Until when a change that begins now may take.
    pub(crate) fn until(&self) -> Instant {
        let live = self.state().live;
        Instant::now() + if live { WRITE } else { WRITE_BLIND }
    }

    /// Makes the draft of a file a version, if it is another text than the store's.
    pub(crate) fn commit(self: &Arc<Self>, ino: Ino) -> Result<(), Errno> {
        let until = self.until();
        let mut last: Option<Unmade> = None;
        loop {
            let plan = plan(&mut self.state(), ino, &self.options)?;
            // The last try failed, and the look at the store has not shown that it went well all the same.
            let failed = last.take().filter(|_| !matches!(plan, Plan::Done));
            if let Some(unmade) = failed.filter(|unmade| !unmade.again || Instant::now() >= until) {
                return Err(unmade.errno);
            }
            let unmade = match plan {
                Plan::Done => return Ok(()),
                Plan::Rebase { from, head } => {
                    let text = self.text(&head)?;
                    let mut state = self.state();
                    if let Some(draft) = state.tree.file_mut(ino).and_then(|file| file.draft.as_mut()) {
                        draft.rebase(from, &head, &text)?;
                    }
                    state.tree.news_of(ino);
                    continue;
                }
                Plan::Create { path, text, edition } => self.create(ino, path, (&text, edition), until),
                Plan::Update { memory, known, text, edition, reason } => {
                    self.update(ino, memory, known.as_ref(), (&text, edition), reason.as_deref(), until)
                }
            };
            let Err(unmade) = unmade else { return Ok(()) };
            if unmade.look && self.catch_up().is_err() {
                return Err(self.state().check_open().err().unwrap_or(unmade.errno));
            }
            if !unmade.look {
                return Err(unmade.errno);
            }
            // It was done, and then somebody else came: what was appended must not be appended twice.
            if self.has_arrived(ino) {
                return Ok(());
            }
            last = Some(unmade);
        }
    }

    /// Whether the text that was sent for a file has become a version all the same; it is no draft any more then.
    fn has_arrived(&self, ino: Ino) -> bool {
        let mut state = self.state();
        let Some(sent) = state.sent.take().filter(|sent| sent.arrived) else { return false };
        let file = state.tree.file(ino);
        let same = file
            .and_then(|file| file.draft.as_ref())
            .is_some_and(|draft| Sha256::of(&draft.bytes) == sent.hash);
        if same {
            settle_draft(&mut state, ino);
        }
        same
    }

    fn create(
        self: &Arc<Self>,
        ino: Ino,
        path: String,
        (text, edition): (&str, u64),
        until: Instant,
    ) -> Result<(), Unmade> {
        let flight = self.depart([], [path.clone()]);
        let applied = self.change(None, &[Edit::Create { path: &path, content: text }], until)?;
        let mut state = self.state();
        flight.land(&mut state);
        let applied = applied.first();
        let memory = applied.and_then(|applied| server::read_memory(&applied.memory_id));
        let head = applied.and_then(|applied| new_head(applied.memory_version_id.as_deref(), text));
        if let (Some(memory), Some(head)) = (memory, head) {
            state.tree.adopt(ino, memory);
            self.committed(&mut state, ino, head, edition);
        }
        Ok(())
    }

    fn update(
        self: &Arc<Self>,
        ino: Ino,
        memory: MemoryId,
        known: Option<&Head>,
        (text, edition): (&str, u64),
        reason: Option<&str>,
        until: Instant,
    ) -> Result<(), Unmade> {
        let expected = known.map(|head| head.hash.to_string());
        let edit = Edit::Update {
            memory_id: &spell(memory),
            content: Some(text),
            new_path: None,
            expected_content_sha256: expected.as_deref(),
        };
        let flight = self.depart([memory], []);
        {
            let mut state = self.state();
            let hash = Sha256::of(text.as_bytes());
            state.sent = Some(Sent { memory, hash, arrived: false });
            if let Some(file) = state.tree.file_mut(ino) {
                // Those before it may have arrived as well, and this one be refused for that.
                file.sent.retain(|(before, _)| *before != hash);
                file.sent.push((hash, text.len()));
            }
        }
        let applied = self.change(reason, &[edit], until)?;
        let mut state = self.state();
        flight.land(&mut state);
        state.sent = None;
        state.tree.adopt(ino, memory);
        let version = applied.first().and_then(|applied| applied.memory_version_id.as_deref());
        let Some(head) = new_head(version, text) else {
            // Nothing had to be written: somebody else wrote the same, and the feed tells in which version.
            return Err(Unmade { errno: Errno::EIO, again: true, look: true });
        };
        self.committed(&mut state, ino, head, edition);
        Ok(())
    }

    /// The text of `head` is the store's now; what was written since the commit began stays a draft over it.
    pub(crate) fn committed(&self, state: &mut State, ino: Ino, head: Head, edition: u64) {
        Counters::one(&self.count.commits);
        let mut whole = false;
        if let Some(file) = state.tree.file_mut(ino) {
            file.sent.clear();
            let foreign = file.foreign;
            match file.draft.take() {
                Some(mut draft) if draft.edition != edition => {
                    draft.base = Some(head.hash);
                    draft.foreign = foreign;
                    draft.shape = match draft.shape {
                        Shape::Append { .. } => {
                            Shape::Append { from: (head.size as usize).min(draft.bytes.len()) }
                        }
                        Shape::Whole | Shape::Patch => Shape::Patch,
                    };
                    file.draft = Some(draft);
                }
                draft => {
                    if let Some(draft) = draft.filter(|draft| Sha256::of(&draft.bytes) == head.hash) {
                        self.texts.insert(head.hash, draft.bytes.into());
                    }
                    whole = true;
                }
            }
            file.head = Some(head);
        }
        if whole {
            settle_handles(state, ino);
        }
        state.tree.news_of(ino);
    }

    /// The last close of a handle that made, cut or wrote a file.
    pub(crate) fn closed(self: &Arc<Self>, ino: Ino, failed: Option<Errno>) {
        let due =
            self.state().tree.file(ino).is_some_and(|file| file.draft.is_some() && file.scratch.is_none());
        if due {
            let result = failed.map_or_else(|| self.commit(ino), Err);
            if result.is_err() && !self.is_being_written(ino) {
                self.state().drop_draft(ino);
            }
        }
        let mut state = self.state();
        state.drop_barren(ino);
        state.tree.drop_unused(ino);
    }

    fn is_being_written(&self, ino: Ino) -> bool {
        self.state().handles.values().any(|handle| handle.ino == ino && (handle.wrote || handle.touched))
    }

    /// Commits everything that was written or made, and the temporary files that were left. The number of failures.
    pub(crate) fn commit_everything(self: &Arc<Self>) -> usize {
        let drafts: Vec<Ino> = {
            let state = self.state();
            let dirty = |ino: &Ino| {
                state
                    .tree
                    .file(*ino)
                    .is_some_and(|file| file.draft.is_some() && file.scratch.is_none() && file.gone.is_none())
            };
            state.tree.nodes.keys().copied().filter(dirty).collect()
        };
        let failed = drafts.into_iter().filter(|ino| self.commit(*ino).is_err()).count();
        self.keep_left(Duration::ZERO);
        failed
    }

    /// Makes temporary files memories that were closed a while ago and hold a text.
    pub(crate) fn keep_left_over(self: &Arc<Self>) {
        self.keep_left(LEFT);
    }

    fn keep_left(self: &Arc<Self>, age: Duration) {
        let left: Vec<Ino> = {
            let state = self.state();
            state.tree.scratch_files().filter(|(_, file)| is_left(file, age)).map(|(ino, _)| ino).collect()
        };
        for ino in left {
            self.state().tree.set_scratch(ino, None);
            // It may be too much by now; then it stays what it was.
            if self.commit(ino).is_err() {
                let mut state = self.state();
                state.tree.set_scratch(ino, Some(names::Scratch::Temporary));
                if let Some(file) = state.tree.file_mut(ino) {
                    file.touched = tree::now();
                }
            }
        }
    }

    /// Whether temporary files lie around that may have to become memories.
    pub(crate) fn has_temporaries(&self) -> bool {
        let state = self.state();
        state.tree.scratch_files().any(|(_, file)| file.scratch == Some(names::Scratch::Temporary))
    }
}

fn is_left(file: &crate::tree::File, age: Duration) -> bool {
    let text =
        file.draft.as_ref().is_some_and(|draft| !draft.bytes.is_empty() && draft::text(&draft.bytes).is_ok());
    let old = file.touched.elapsed().is_ok_and(|elapsed| elapsed >= age);
    file.scratch == Some(names::Scratch::Temporary)
        && file.parked.is_none()
        && file.gone.is_none()
        && file.opens == 0
        && text
        && old
}

/// What is to be done about the draft of a file.
fn plan(state: &mut State, ino: Ino, options: &crate::options::Options) -> Result<Plan, Errno> {
    let path = state.tree.path(ino);
    let Some(file) = state.tree.file(ino) else { return Ok(Plan::Done) };
    let Some(draft) = &file.draft else {
        // The memory may have been deleted under what was committed already.
        return file.gone.and_then(errno_of).map_or(Ok(Plan::Done), Err);
    };
    if file.scratch.is_some() {
        return Ok(Plan::Done);
    }
    if let Some(gone) = file.gone {
        return errno_of(gone).map_or(Ok(Plan::Done), Err);
    }
    state.check_writable(options)?;
    let text = draft::text(&draft.bytes)?;
    if draft.bytes.len() > draft::most_bytes() {
        return Err(Errno::EFBIG);
    }
    let base = file.head.as_ref().map(|head| head.hash);
    if file.memory.is_some() && draft.base != base {
        match draft.shape {
            Shape::Append { from } => {
                let head = file.head.clone().ok_or(Errno::ESTALE)?;
                return Ok(Plan::Rebase { from, head });
            }
            Shape::Patch => return Err(Errno::ESTALE),
            Shape::Whole => {}
        }
    }
    let (text, edition) = (text.to_owned(), draft.edition);
    if let Some(memory) = file.memory {
        let displaced = draft.shape == Shape::Whole && draft.foreign != file.foreign;
        let reason = file.head.as_ref().filter(|_| displaced).map(displacement);
        let known = file.head.clone();
        if known.as_ref().is_some_and(|head| head.hash == Sha256::of(text.as_bytes())) {
            settle_draft(state, ino);
            return Ok(Plan::Done);
        }
        return Ok(Plan::Update { memory, known, text, edition, reason });
    }
    let path = path.ok_or(Errno::ESTALE)?;
    // The place of a memory that an editor has put aside: it is the same memory.
    if let Some(parked) = state.tree.parked_at(&path)
        && let Some(aside) = state.tree.file(parked)
        && let Some(memory) = aside.memory
    {
        let known = aside.head.clone();
        if known.as_ref().is_some_and(|head| head.hash == Sha256::of(text.as_bytes())) {
            if let (Some(file), Some(known)) = (state.tree.file_mut(ino), known) {
                file.head = Some(known);
            }
            state.tree.adopt(ino, memory);
            settle_draft(state, ino);
            return Ok(Plan::Done);
        }
        return Ok(Plan::Update { memory, known, text, edition, reason: None });
    }
    Ok(Plan::Create { path, text, edition })
}

/// The draft is what the store has: nothing is to be written.
fn settle_draft(state: &mut State, ino: Ino) {
    if let Some(file) = state.tree.file_mut(ino) {
        file.draft = None;
    }
    settle_handles(state, ino);
    state.tree.news_of(ino);
}

fn settle_handles(state: &mut State, ino: Ino) {
    let foreign = state.tree.file(ino).map_or(0, |file| file.foreign);
    for handle in state.handles.values_mut().filter(|handle| handle.ino == ino) {
        if handle.wrote || handle.touched {
            handle.foreign = foreign;
        }
        (handle.wrote, handle.touched, handle.failed) = (false, false, None);
    }
}

/// Why a whole rewrite gives a reason: the text that it replaces is another's, and was not seen by who rewrote it.
pub(crate) fn displacement(head: &Head) -> String {
    format!(
        "Replaces {}, which was written elsewhere while this text was being written.",
        spell_version(head.version)
    )
}

/// The head that a commit of `text` made.
pub(crate) fn new_head(version: Option<&str>, text: &str) -> Option<Head> {
    let version = server::read_version(version?)?;
    Some(Head {
        version,
        hash: Sha256::of(text.as_bytes()),
        size: text.len() as u64,
        mtime: server::system_time(version.minted_at()),
    })
}
