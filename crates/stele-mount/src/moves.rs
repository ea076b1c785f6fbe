//! Names change: unlink, rmdir, rename. All of this runs on the lane, one after the other, so that what was closed
//! before is committed before.

use std::sync::Arc;
use std::time::Instant;

use fuser::{Errno, RenameFlags};
use stele_client::{Applied, Edit};
use stele_core::id::MemoryId;

use crate::commit::{displacement, new_head};
use crate::draft;
use crate::names::{self, Made, Scratch};
use crate::server::{self, Unmade, spell};
use crate::shared::{Counters, Shared, State};
use crate::tree::{Head, Ino, Kind};

/// Most changes of a changeset. DESIGN 7.
const CHANGES: usize = 1_000;

/// A name in a directory.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) parent: Ino,
    pub(crate) name: String,
}

/// A memory that a file is to be the new text of.
#[derive(Clone, Debug)]
struct Target {
    memory: MemoryId,
    head: Option<Head>,
}

/// What a rename is to do.
enum Plan {
    Done,
    /// Only this mount knows of what moves, or of where it moves to.
    Here {
        scratch: Option<Scratch>,
    },
    /// A memory gets a scratch name.
    Park {
        path: String,
        scratch: Scratch,
    },
    /// What the file holds goes to the store first.
    CommitFirst(Ino),
    /// A memory that was put aside under the name is deleted first.
    RemoveFirst,
    /// A file of this mount becomes a memory.
    Create {
        path: String,
        head: Option<Head>,
    },
    /// A file of this mount becomes the text of a memory.
    Overwrite {
        target: Target,
        head: Option<Head>,
    },
    /// A memory gets another path.
    Move {
        memory: MemoryId,
        head: Option<Head>,
        path: String,
    },
    /// A memory becomes the text of another.
    Onto {
        memory: MemoryId,
        head: Head,
        target: Target,
    },
    /// All memories of a directory get other paths.
    Directory {
        moves: Vec<(Ino, MemoryId, String)>,
    },
}

impl Shared {
    /// Removes a file.
    pub(crate) fn unlink(self: &Arc<Self>, place: &Place) -> Result<(), Errno> {
        let until = self.until();
        let mut last: Option<Unmade> = None;
        loop {
            let (ino, memory) = {
                let mut state = self.state();
                state.check_writable(&self.options)?;
                let Some(ino) = state.tree.child(place.parent, &place.name) else {
                    return last.map_or(Err(Errno::ENOENT), |_| Ok(()));
                };
                let memory = state.tree.file(ino).ok_or(Errno::EISDIR)?.memory;
                let Some(memory) = memory else {
                    state.tree.remove(ino);
                    return Ok(());
                };
                (ino, memory)
            };
            if let Some(unmade) = last.filter(|unmade| !unmade.again || Instant::now() >= until) {
                return Err(unmade.errno);
            }
            let flight = self.depart([memory], []);
            let edit = Edit::Delete { memory_id: &spell(memory), expected_content_sha256: None };
            match self.change(None, &[edit], until) {
                Ok(_) => {
                    let mut state = self.state();
                    flight.land(&mut state);
                    Counters::one(&self.count.commits);
                    state.tree.dead.insert(memory);
                    state.tree.remove(ino);
                    return Ok(());
                }
                Err(unmade) => {
                    drop(flight);
                    self.look(unmade)?;
                    last = Some(unmade);
                }
            }
        }
    }

    /// Removes an empty directory.
    pub(crate) fn rmdir(self: &Arc<Self>, place: &Place) -> Result<(), Errno> {
        let mut state = self.state();
        state.check_writable(&self.options)?;
        let ino = state.tree.child(place.parent, &place.name).ok_or(Errno::ENOENT)?;
        if !state.tree.directory(ino).ok_or(Errno::ENOTDIR)?.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
        state.tree.remove(ino);
        Ok(())
    }

    /// Gives a file or a directory another name.
    pub(crate) fn rename(
        self: &Arc<Self>,
        from: &Place,
        to: &Place,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        if flags.intersects(RenameFlags::RENAME_EXCHANGE | RenameFlags::RENAME_WHITEOUT) {
            return Err(Errno::EINVAL);
        }
        let until = self.until();
        let mut last: Option<Unmade> = None;
        loop {
            let (ino, plan) = {
                let state = self.state();
                state.check_writable(&self.options)?;
                let Some(ino) = state.tree.child(from.parent, &from.name) else {
                    let arrived = last.is_some() && state.tree.child(to.parent, &to.name).is_some();
                    return if arrived { Ok(()) } else { Err(Errno::ENOENT) };
                };
                let keep = flags.contains(RenameFlags::RENAME_NOREPLACE);
                (ino, plan(&state, ino, to, keep)?)
            };
            if let Some(unmade) = last.filter(|unmade| !unmade.again || Instant::now() >= until) {
                return Err(unmade.errno);
            }
            match self.carry_out(ino, to, plan, last.is_some(), until) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(unmade) => {
                    self.look(unmade)?;
                    last = Some(unmade);
                }
            }
        }
    }

    /// Where no version was written because somebody else had written the same, the feed tells which one it is.
    fn learn_version(&self, version: Option<&str>) {
        if version.is_none() {
            // The feed's own thread tells it too, only later.
            let _ = self.catch_up();
        }
    }

    /// Looks at the store after a change that failed.
    fn look(&self, unmade: Unmade) -> Result<(), Errno> {
        if unmade.look && self.catch_up().is_ok() {
            return Ok(());
        }
        Err(self.state().check_open().err().unwrap_or(unmade.errno))
    }

    /// Whether the rename is done with it.
    fn carry_out(
        self: &Arc<Self>,
        ino: Ino,
        to: &Place,
        plan: Plan,
        again: bool,
        until: Instant,
    ) -> Result<bool, Unmade> {
        let never = |errno| Unmade { errno, again: false, look: false };
        match plan {
            Plan::Done => {}
            Plan::CommitFirst(file) => {
                self.commit(file).map_err(never)?;
                return Ok(false);
            }
            Plan::RemoveFirst => {
                self.unlink(to).map_err(never)?;
                return Ok(false);
            }
            Plan::Here { scratch } => {
                let mut state = self.state();
                state.tree.rename(ino, to.parent, &to.name);
                state.tree.set_scratch(ino, scratch);
                if let Some(file) = state.tree.file_mut(ino) {
                    file.parked = None;
                }
            }
            Plan::Park { path, scratch } => {
                self.state().tree.park(ino, path, to.parent, &to.name, scratch);
            }
            Plan::Create { path, head } => {
                let (text, edition) = self.whole_text(ino, head.as_ref()).map_err(never)?;
                let flight = self.depart([], [path.clone()]);
                let edit = Edit::Create { path: &path, content: &text };
                let applied = self.change(None, &[edit], until)?;
                let memory = applied.first().and_then(|applied| server::read_memory(&applied.memory_id));
                let mut state = self.state();
                flight.land(&mut state);
                state.tree.rename(ino, to.parent, &to.name);
                self.became(&mut state, ino, memory, version_of(&applied, 0), &text, edition);
            }
            Plan::Overwrite { target, head } => {
                let (text, edition) = self.whole_text(ino, head.as_ref()).map_err(never)?;
                let reason = target.head.as_ref().filter(|_| again).map(displacement);
                let expected = target.head.as_ref().map(|head| head.hash.to_string());
                let edit = Edit::Update {
                    memory_id: &spell(target.memory),
                    content: Some(&text),
                    new_path: None,
                    expected_content_sha256: expected.as_deref(),
                };
                let flight = self.depart([target.memory], []);
                let applied = self.change(reason.as_deref(), &[edit], until)?;
                let mut state = self.state();
                flight.land(&mut state);
                state.tree.rename(ino, to.parent, &to.name);
                // Where the text was there already no version was written: the head is what it was.
                if let (None, Some(file)) = (version_of(&applied, 0), state.tree.file_mut(ino)) {
                    file.head = target.head.clone();
                }
                self.became(&mut state, ino, Some(target.memory), version_of(&applied, 0), &text, edition);
                drop(state);
                self.learn_version(version_of(&applied, 0));
            }
            Plan::Move { memory, head, path } => {
                // The new version is shown with the text that is known: it must be the one that is moved.
                let expected = head.map(|head| head.hash.to_string());
                let edit = Edit::Update {
                    memory_id: &spell(memory),
                    content: None,
                    new_path: Some(&path),
                    expected_content_sha256: expected.as_deref(),
                };
                let flight = self.depart([memory], [path.clone()]);
                let applied = self.change(None, &[edit], until)?;
                let mut state = self.state();
                flight.land(&mut state);
                Counters::one(&self.count.commits);
                state.tree.rename(ino, to.parent, &to.name);
                let mut draft = false;
                state.tree.set_scratch(ino, None);
                if let Some(file) = state.tree.file_mut(ino) {
                    (file.parked, draft) = (None, file.draft.is_some() && file.opens == 0);
                }
                moved(&mut state, ino, version_of(&applied, 0));
                drop(state);
                if draft {
                    self.commit(ino).map_err(never)?;
                }
            }
            Plan::Onto { memory, head, target } => {
                self.onto(ino, to, (memory, &head), &target, again, until)?;
                // What was written to it while it was put aside.
                self.commit(ino).map_err(never)?;
            }
            Plan::Directory { moves } => self.move_directory(ino, to, &moves, until)?,
        }
        Ok(true)
    }

    fn onto(
        self: &Arc<Self>,
        ino: Ino,
        to: &Place,
        (memory, head): (MemoryId, &Head),
        target: &Target,
        again: bool,
        until: Instant,
    ) -> Result<(), Unmade> {
        let never = |errno| Unmade { errno, again: false, look: false };
        let text = self.text(head).map_err(never)?;
        let text = draft::text(&text).map_err(never)?;
        let reason = target.head.as_ref().filter(|_| again).map(displacement);
        let expected = (target.head.as_ref().map(|head| head.hash.to_string()), head.hash.to_string());
        let edits = [
            Edit::Update {
                memory_id: &spell(target.memory),
                content: Some(text),
                new_path: None,
                expected_content_sha256: expected.0.as_deref(),
            },
            Edit::Delete { memory_id: &spell(memory), expected_content_sha256: Some(&expected.1) },
        ];
        let flight = self.depart([memory, target.memory], []);
        let applied = self.change(reason.as_deref(), &edits, until)?;
        let mut state = self.state();
        flight.land(&mut state);
        state.tree.rename(ino, to.parent, &to.name);
        state.tree.dead.insert(memory);
        if let (None, Some(file)) = (version_of(&applied, 0), state.tree.file_mut(ino)) {
            file.head = target.head.clone();
        }
        self.became(&mut state, ino, Some(target.memory), version_of(&applied, 0), text, 0);
        drop(state);
        self.learn_version(version_of(&applied, 0));
        Ok(())
    }

    /// A directory's memories move together; beyond a thousand of them in several steps, which are taken back if one
    /// of them is refused.
    fn move_directory(
        self: &Arc<Self>,
        ino: Ino,
        to: &Place,
        moves: &[(Ino, MemoryId, String)],
        until: Instant,
    ) -> Result<(), Unmade> {
        let before: Vec<String> = {
            let state = self.state();
            let path = |file: &Ino| {
                let parked = state.tree.file(*file).and_then(|file| file.parked.clone());
                parked.or_else(|| state.tree.path(*file)).unwrap_or_default()
            };
            moves.iter().map(|(file, ..)| path(file)).collect()
        };
        let flight = self
            .depart(moves.iter().map(|(_, memory, _)| *memory), moves.iter().map(|(.., path)| path.clone()));
        // Each new version is shown with the text that is known: it must be the one that is moved.
        let known: Vec<Option<String>> = {
            let state = self.state();
            let hash = |file: &Ino| Some(state.tree.file(*file)?.head.as_ref()?.hash.to_string());
            moves.iter().map(|(file, ..)| hash(file)).collect()
        };
        let mut versions = Vec::with_capacity(moves.len());
        for (number, some) in moves.chunks(CHANGES).enumerate() {
            let ids: Vec<String> = some.iter().map(|(_, memory, _)| spell(*memory)).collect();
            let known = &known[number * CHANGES..];
            let edits: Vec<Edit<'_>> = some
                .iter()
                .zip(&ids)
                .zip(known)
                .map(|(((.., path), id), hash)| edit_path(id, path, hash.as_deref()))
                .collect();
            match self.change(None, &edits, until) {
                Ok(applied) => {
                    versions.extend((0..some.len()).map(|at| version_of(&applied, at).map(str::to_owned)))
                }
                Err(unmade) => {
                    self.take_back(&moves[..number * CHANGES], &before, until);
                    return Err(unmade);
                }
            }
        }
        let mut state = self.state();
        flight.land(&mut state);
        Counters::one(&self.count.commits);
        state.tree.rename(ino, to.parent, &to.name);
        for ((file, _, path), version) in moves.iter().zip(versions) {
            if let Some(parked) = state.tree.file_mut(*file).and_then(|file| file.parked.as_mut()) {
                parked.clone_from(path);
            }
            moved(&mut state, *file, version.as_deref());
        }
        Ok(())
    }

    fn take_back(&self, moves: &[(Ino, MemoryId, String)], before: &[String], until: Instant) {
        let back: Vec<(String, &String)> =
            moves.iter().zip(before).map(|((_, memory, _), path)| (spell(*memory), path)).collect();
        for some in back.chunks(CHANGES) {
            let edits: Vec<Edit<'_>> = some.iter().map(|(id, path)| edit_path(id, path, None)).collect();
            if self.change(None, &edits, until).is_err() {
                tracing::error!(store.id = %self.options.store, "a directory was moved in part, and could not be moved back");
            }
        }
    }

    /// The whole text of a file of this mount, and the edition of its draft.
    fn whole_text(self: &Arc<Self>, ino: Ino, head: Option<&Head>) -> Result<(String, u64), Errno> {
        let draft = {
            let state = self.state();
            let draft = state.tree.file(ino).and_then(|file| file.draft.as_ref());
            draft.map(|draft| (draft.bytes.clone(), draft.edition))
        };
        let (bytes, edition) = match (draft, head) {
            (Some(draft), _) => draft,
            (None, Some(head)) => (self.text(head)?.to_vec(), 0),
            (None, None) => (Vec::new(), 0),
        };
        if bytes.len() > draft::most_bytes() {
            return Err(Errno::EFBIG);
        }
        Ok((draft::text(&bytes)?.to_owned(), edition))
    }

    /// A file shows a memory now, whose text is its own.
    fn became(
        self: &Arc<Self>,
        state: &mut State,
        ino: Ino,
        memory: Option<MemoryId>,
        version: Option<&str>,
        text: &str,
        edition: u64,
    ) {
        let Some(memory) = memory else { return };
        state.tree.adopt(ino, memory);
        let unchanged = state.tree.file(ino).and_then(|file| file.head.clone());
        if let Some(head) = new_head(version, text).or(unchanged) {
            self.committed(state, ino, head, edition);
        }
    }
}

fn edit_path<'a>(id: &'a str, path: &'a str, hash: Option<&'a str>) -> Edit<'a> {
    Edit::Update { memory_id: id, content: None, new_path: Some(path), expected_content_sha256: hash }
}

fn version_of(applied: &[Applied], at: usize) -> Option<&str> {
    applied.get(at)?.memory_version_id.as_deref()
}

/// A memory has another path: that is a version of its own, with the same text.
fn moved(state: &mut State, ino: Ino, version: Option<&str>) {
    let version = version.and_then(server::read_version);
    if let (Some(version), Some(file)) = (version, state.tree.file_mut(ino)) {
        if let Some(head) = &mut file.head {
            (head.version, head.mtime) = (version, server::system_time(version.minted_at()));
        }
        state.tree.news_of(ino);
    }
}

fn plan(state: &State, ino: Ino, to: &Place, keep: bool) -> Result<Plan, Errno> {
    let there = state.tree.child(to.parent, &to.name);
    if there == Some(ino) {
        return Ok(Plan::Done);
    }
    if keep && there.is_some() {
        return Err(Errno::EEXIST);
    }
    let directory = state.tree.path(to.parent).ok_or(Errno::ENOENT)?;
    match state.tree.nodes.get(&ino).map(|node| &node.kind) {
        Some(Kind::Directory(_)) => plan_directory(state, ino, to, &directory, there),
        Some(Kind::File(_)) => plan_file(state, ino, to, &directory, there),
        None => Err(Errno::ENOENT),
    }
}

fn plan_directory(
    state: &State,
    ino: Ino,
    to: &Place,
    directory: &str,
    there: Option<Ino>,
) -> Result<Plan, Errno> {
    if state.tree.is_within(to.parent, ino) {
        return Err(Errno::EINVAL);
    }
    if let Some(there) = there {
        let there = state.tree.directory(there).ok_or(Errno::ENOTDIR)?;
        if !there.is_empty() {
            return Err(Errno::ENOTEMPTY);
        }
    }
    let old = state.tree.path(ino).ok_or(Errno::ENOENT)?;
    let new = names::path(directory, &to.name)?;
    let mut moves = Vec::new();
    for below in state.tree.files_below(ino) {
        let Some(file) = state.tree.file(below) else { continue };
        let path = file.parked.clone().or_else(|| state.tree.path(below)).unwrap_or_default();
        let Some(rest) = path.strip_prefix(&old).filter(|rest| rest.starts_with('/')) else { continue };
        let path = if file.scratch.is_some() && file.memory.is_none() {
            continue;
        } else {
            names::path("/", (new.clone() + rest).trim_start_matches('/'))?
        };
        if let Some(memory) = file.memory {
            moves.push((below, memory, path));
        }
    }
    Ok(if moves.is_empty() { Plan::Here { scratch: None } } else { Plan::Directory { moves } })
}

fn plan_file(
    state: &State,
    ino: Ino,
    to: &Place,
    directory: &str,
    there: Option<Ino>,
) -> Result<Plan, Errno> {
    if there.is_some_and(|there| state.tree.directory(there).is_some()) {
        return Err(Errno::EISDIR);
    }
    let file = state.tree.file(ino).ok_or(Errno::ENOENT)?;
    let aside = |ino: Ino| {
        let file = state.tree.file(ino)?;
        Some(Target { memory: file.memory?, head: file.head.clone() })
    };
    let occupied = there.and_then(|there| {
        let parked = state.tree.file(there).is_some_and(|file| file.parked.is_some());
        aside(there).filter(|_| !parked)
    });
    let scratch = names::scratch(&to.name, Made::Plainly).filter(|_| occupied.is_none());
    if let Some(scratch) = scratch {
        if there.is_some_and(|there| state.tree.file(there).is_some_and(|file| file.parked.is_some())) {
            return Ok(Plan::RemoveFirst);
        }
        return Ok(match (file.memory, &file.parked) {
            (Some(_), None) if file.draft.is_some() => Plan::CommitFirst(ino),
            (Some(_), parked) => {
                let path = parked.clone().or_else(|| state.tree.path(ino)).ok_or(Errno::ENOENT)?;
                Plan::Park { path, scratch }
            }
            (None, _) => Plan::Here { scratch: Some(scratch) },
        });
    }
    let path = names::path(directory, &to.name)?;
    let Some(memory) = file.memory else {
        let put_aside = || state.tree.parked_at(&path).and_then(aside);
        if let Some(target) = occupied.or_else(put_aside) {
            return Ok(Plan::Overwrite { target, head: file.head.clone() });
        }
        // It is still being written: it will be committed under its new name.
        if file.is_new() && file.opens > 0 {
            return Ok(Plan::Here { scratch: None });
        }
        if file.scratch.is_some() && state.is_full() {
            return Err(Errno::ENOSPC);
        }
        return Ok(Plan::Create { path, head: file.head.clone() });
    };
    if file.parked.as_deref() == Some(&path) && occupied.is_none() {
        return Ok(if file.draft.is_some() {
            Plan::Move { memory, head: file.head.clone(), path }
        } else {
            Plan::Here { scratch: None }
        });
    }
    let put_aside = || state.tree.parked_at(&path).filter(|parked| *parked != ino).and_then(aside);
    match occupied.or_else(put_aside) {
        Some(_) if file.draft.is_some() && file.scratch.is_none() => Ok(Plan::CommitFirst(ino)),
        Some(target) => {
            let head = file.head.clone().ok_or(Errno::ESTALE)?;
            Ok(Plan::Onto { memory, head, target })
        }
        None => Ok(Plan::Move { memory, head: file.head.clone(), path }),
    }
}
