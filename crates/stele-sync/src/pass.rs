//! One pass: look at both sides, decide, carry out, write down.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stele_client::{Client, ClientError};
use stele_core::hash::Sha256;
use stele_core::work::attachment::Access;

use crate::SyncError;
use crate::folder::{Entry, Folder, Known, Put, Scan};
use crate::names::is_reserved;
use crate::plan::{Local, Step, find_moves, guard_deletions, step};
use crate::remote::{self, Tree};
use crate::report::{Done, Left, Report};
use crate::state::{Base, Refusal, Stat, State};

/// How long a file must be gone until the memory is deleted, while the folder is in use. spec/anthropic.md 13.
const GONE: Duration = Duration::from_secs(30);
/// Least time between two passes that delete memories, while the folder is in use.
const BETWEEN_DELETIONS: Duration = Duration::from_secs(15);
/// Most changes of one request.
const CHANGES: usize = 200;
/// Most bytes of contents of one request; the server takes twice as much.
const CHANGES_BYTES: usize = 4 * 1024 * 1024;

/// Which folder, of which store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder; made where it is missing.
    pub dir: PathBuf,
    /// The store's id, `memstore_...`.
    pub store: String,
    /// The same as a UUID.
    pub store_uuid: String,
    /// With read_only nothing goes to the store.
    pub access: Access,
    /// Take files into the store that lie in a folder which was never synced.
    pub adopt: bool,
    /// Delete every memory whose file is gone, however many there are.
    pub delete_all: bool,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// When a pass happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Files are being written: one that just changed or went waits for the next pass.
    InUse,
    /// Nobody writes: a single sync, or the last one.
    AtRest,
}

/// A folder of a store, open for syncing; no other process can sync it meanwhile.
pub struct Sync {
    pub(crate) client: Arc<Client>,
    pub(crate) options: Options,
    folder: Folder,
    state: State,
    /// Whether the state has changed since it was written.
    unsaved: bool,
    /// The store as it was last seen.
    tree: Option<Tree>,
    /// Since when files are missing.
    missing: BTreeMap<String, Instant>,
    /// How the files that are to go looked the last time.
    candidates: BTreeMap<String, Stat>,
    /// New files whose path was taken once already.
    collided: BTreeSet<String>,
    deleted_at: Option<Instant>,
}

struct Knowledge<'a> {
    state: &'a State,
    tree: Option<&'a Tree>,
}

impl Known for Knowledge<'_> {
    fn hash(&self, path: &str, stat: &Stat) -> Option<Sha256> {
        let base = self.state.bases.get(path)?;
        (base.stat == Some(*stat)).then_some(base.sha256)
    }

    fn is_memory(&self, path: &str) -> bool {
        self.state.bases.contains_key(path) || self.tree.is_some_and(|tree| tree.nodes.contains_key(path))
    }
}

/// What a pass is going to do.
struct Plan {
    scan: Scan,
    steps: BTreeMap<String, Step>,
    /// What was decided to be left for now.
    left: BTreeMap<String, Left>,
}

impl Plan {
    fn local(&self, path: &str) -> (Option<Sha256>, Option<Stat>) {
        match self.scan.entries.get(path) {
            Some(Entry { local: Local::Text(hash), stat }) => (Some(*hash), *stat),
            Some(Entry { stat, .. }) => (None, *stat),
            None => (None, None),
        }
    }

    /// Whether anything is to be carried out.
    fn acts(&self) -> bool {
        let idle =
            |step: &Step| matches!(step, Step::Same | Step::ReadOnly | Step::Unfit(_) | Step::HoldBack);
        self.steps.values().any(|step| !idle(step))
    }
}

impl Sync {
    /// Opens the folder.
    ///
    /// # Errors
    /// It cannot be made or used, is of another store, is being synced, or holds files although it was never synced.
    pub fn open(client: Arc<Client>, options: Options) -> Result<Self, SyncError> {
        let mode = if options.access == Access::ReadOnly { 0o444 } else { 0o644 };
        let folder = Folder::open(&options.dir, mode, options.dry_run)?;
        let state = match folder.state()? {
            Some(bytes) => State::read(&bytes)
                .map_err(|cause| SyncError::Damaged { file: folder.state_file(), cause })?,
            None if options.adopt || folder.is_empty()? => {
                State { store: options.store.clone(), ..State::default() }
            }
            None => return Err(SyncError::NotEmpty(options.dir)),
        };
        if state.store != options.store {
            return Err(SyncError::OtherStore { dir: options.dir, is: state.store, wanted: options.store });
        }
        Ok(Self {
            client,
            options,
            folder,
            state,
            unsaved: false,
            tree: None,
            missing: BTreeMap::new(),
            candidates: BTreeMap::new(),
            collided: BTreeSet::new(),
            deleted_at: None,
        })
    }

    /// Where the store's changes go on behind what was last seen of it, and in which life of the database.
    pub(crate) fn stands(&self) -> Option<(u64, String)> {
        self.tree.as_ref().map(|tree| (tree.sequence, tree.epoch.clone()))
    }

    /// Whether something in the folder is to be carried out; asks the server nothing.
    pub(crate) fn has_work(&mut self, moment: Moment) -> Result<bool, SyncError> {
        self.folder.check()?;
        let Some(tree) = self.tree.take() else { return Ok(true) };
        let plan = self.plan(&tree, moment);
        self.tree = Some(tree);
        Ok(plan?.acts())
    }

    /// Makes both sides the same, as far as that goes; what does not is in the report. Safe to be killed at any time.
    ///
    /// # Errors
    /// The server, or the folder as a whole, cannot be used. What was done until then is done and known.
    pub fn pass(&mut self, moment: Moment) -> Result<Report, SyncError> {
        self.folder.check()?;
        let tree = match remote::tree(&self.client, &self.options.store_uuid) {
            Err(SyncError::Client(ClientError::Refused { status: 404, .. })) => {
                let (store, dir) = (self.options.store.clone(), self.options.dir.clone());
                return Err(SyncError::StoreGone { store, dir });
            }
            tree => tree?,
        };
        if self.state.epoch != tree.epoch {
            // A database that was restored does not know what was last: what it lacks was not deleted there, and what
            // it has may be older than what lies here.
            self.state.bases.clear();
            self.state.refused.clear();
            self.state.epoch = tree.epoch.clone();
            self.unsaved = true;
        }
        let plan = self.plan(&tree, moment)?;
        let mut report = Report::default();
        let done = if self.options.dry_run {
            announce(&plan, &mut report);
            Ok(())
        } else {
            let done = self.carry_out(&plan, &tree, &mut report);
            let kept = self.keep();
            done.and(kept)
        };
        self.tree = Some(tree);
        for (path, left) in plan.left {
            report.add(path, Done::Left(left));
        }
        for (path, why) in plan.scan.outside {
            report.add(path, Done::Left(Left::Unfit(why)));
        }
        report.items.sort_by(|a, b| a.path.cmp(&b.path));
        done.map(|()| report)
    }

    fn keep(&mut self) -> Result<(), SyncError> {
        if self.unsaved {
            self.folder.keep_state(&self.state.write())?;
            self.unsaved = false;
        }
        Ok(())
    }

    fn plan(&mut self, tree: &Tree, moment: Moment) -> Result<Plan, SyncError> {
        let scan = self.folder.scan(&Knowledge { state: &self.state, tree: Some(tree) })?;
        let known = self.state.bases.keys().chain(scan.entries.keys()).chain(tree.nodes.keys());
        let paths: BTreeSet<String> = known.cloned().collect();
        let mut plan = Plan { steps: BTreeMap::new(), left: BTreeMap::new(), scan };
        let (mut texts, mut missing) = (BTreeMap::new(), 0);
        for path in &paths {
            if path.split('/').any(is_reserved) {
                plan.left.insert(path.clone(), Left::Blocked("its name is kept for other uses here".into()));
                continue;
            }
            let base = self.state.bases.get(path).map(|base| base.sha256);
            let local = plan.scan.entries.get(path).map_or(Local::Missing, |entry| entry.local.clone());
            missing += usize::from(base.is_some() && local == Local::Missing);
            if let Local::Text(hash) = local {
                texts.insert(path.clone(), hash);
            }
            let remote = tree.nodes.get(path).map(|node| node.sha256);
            plan.steps.insert(path.clone(), step(base, &local, remote, self.options.access));
        }
        find_moves(&mut plan.steps, &texts);
        if !self.options.delete_all {
            // What was moved is not gone.
            let moved = plan.steps.values().filter(|step| matches!(step, Step::Move(..))).count();
            guard_deletions(&mut plan.steps, self.state.bases.len(), missing - moved);
        }
        self.leave(&mut plan, &texts, moment);
        Ok(plan)
    }

    /// Takes out of a plan what is left for now.
    fn leave(&mut self, plan: &mut Plan, texts: &BTreeMap<String, Sha256>, moment: Moment) {
        let (mut candidates, mut missing) = (BTreeMap::new(), BTreeMap::new());
        let now = Instant::now();
        let deletes = self.deleted_at.is_none_or(|at| now.duration_since(at) >= BETWEEN_DELETIONS);
        let mut leave = Vec::new();
        for (path, step) in &plan.steps {
            let left = match step {
                Step::ReadOnly => Some(Left::ReadOnly),
                Step::Unfit(why) => Some(Left::Unfit(why.clone())),
                Step::HoldBack => Some(Left::HeldBack),
                Step::Create | Step::Update(_) | Step::Move(..) => {
                    let stat = plan.scan.entries.get(path).and_then(|entry| entry.stat);
                    let still = stat.is_some() && self.candidates.get(path) == stat.as_ref();
                    candidates.extend(stat.map(|stat| (path.clone(), stat)));
                    match self.state.refused.get(path) {
                        Some(refusal) if Some(&refusal.sha256) == texts.get(path) => {
                            Some(Left::Refused(refusal.message.clone()))
                        }
                        _ if moment == Moment::InUse && !still => Some(Left::Settling),
                        _ => None,
                    }
                }
                Step::DeleteThere(_) => {
                    let since = *self.missing.get(path).unwrap_or(&now);
                    missing.insert(path.clone(), since);
                    let waits = moment == Moment::InUse && !(deletes && now.duration_since(since) >= GONE);
                    waits.then_some(Left::Settling)
                }
                _ => None,
            };
            leave.extend(left.map(|left| (path.clone(), left)));
        }
        (self.candidates, self.missing) = (candidates, missing);
        for (path, left) in leave {
            plan.steps.remove(&path);
            plan.left.insert(path, left);
        }
    }

    fn carry_out(&mut self, plan: &Plan, tree: &Tree, report: &mut Report) -> Result<(), SyncError> {
        self.settle(plan, tree, report);
        self.remove_here(plan, report)?;
        self.pull(plan, tree, report)?;
        self.push(plan, report)
    }

    fn know(&mut self, path: &str, sha256: Sha256, stat: Option<Stat>) {
        self.state.refused.remove(path);
        self.state.bases.insert(path.to_owned(), Base { sha256, stat });
        self.unsaved = true;
    }

    fn forget(&mut self, path: &str) {
        let known = self.state.bases.remove(path).is_some() | self.state.refused.remove(path).is_some();
        self.unsaved |= known;
    }

    /// Writes down what is the same without our doing.
    fn settle(&mut self, plan: &Plan, tree: &Tree, report: &mut Report) {
        for (path, _) in plan.steps.iter().filter(|(_, step)| **step == Step::Same) {
            match tree.nodes.get(path) {
                Some(node) => {
                    let stat = plan.scan.recognisable(plan.local(path).1);
                    report.same += 1;
                    let known = self.state.bases.get(path);
                    if known.is_none_or(|base| base.sha256 != node.sha256 || base.stat != stat) {
                        self.know(path, node.sha256, stat);
                    }
                }
                None => self.forget(path),
            }
        }
    }

    fn remove_here(&mut self, plan: &Plan, report: &mut Report) -> Result<(), SyncError> {
        for (path, _) in plan.steps.iter().filter(|(_, step)| **step == Step::RemoveHere) {
            let done = match self.folder.remove(path, plan.local(path).1)? {
                Put::Done => {
                    self.forget(path);
                    Done::RemovedHere
                }
                Put::Changed => Done::Left(Left::Raced),
                Put::Blocked(why) => Done::Left(Left::Blocked(why)),
            };
            report.add(path, done);
        }
        Ok(())
    }

    fn pull(&mut self, plan: &Plan, tree: &Tree, report: &mut Report) -> Result<(), SyncError> {
        let pulls = plan.steps.iter().filter(|(_, step)| matches!(step, Step::Pull | Step::Displace));
        let wanted: BTreeMap<&str, &str> = pulls
            .filter_map(|(path, _)| Some((tree.nodes.get(path)?.memory_id.as_str(), path.as_str())))
            .collect();
        let by_path: BTreeSet<(&str, &str)> = wanted.iter().map(|(id, path)| (*path, *id)).collect();
        let ids = by_path.into_iter().map(|(_, id)| id.to_owned()).collect();
        let (client, store) = (Arc::clone(&self.client), self.options.store_uuid.clone());
        remote::texts(&client, &store, ids, |text| {
            // A memory that moved meanwhile is looked at in the next pass.
            let Some(path) = wanted.get(text.memory_id.as_str()).filter(|path| **path == text.path) else {
                return Ok(());
            };
            let done = self.put(plan, path, &text.content)?;
            report.add(*path, done);
            Ok(())
        })
    }

    fn put(&mut self, plan: &Plan, path: &str, text: &str) -> Result<Done, SyncError> {
        let mut before = plan.local(path).1;
        let mut aside = None;
        if plan.steps.get(path) == Some(&Step::Displace) {
            let (kept, now) = self.folder.keep_aside(path)?;
            let same =
                |a: Stat, b: Stat| (a.inode, a.size_bytes, a.mtime_ns) == (b.inode, b.size_bytes, b.mtime_ns);
            if before.zip(now).is_some_and(|(before, now)| same(before, now)) {
                before = now;
            }
            aside = Some(kept);
        }
        Ok(match self.folder.write(path, text, before)? {
            Put::Done => {
                // By its times it is recognised from the next pass on.
                self.know(path, Sha256::of(text.as_bytes()), None);
                aside.map_or(Done::Pulled, Done::Displaced)
            }
            Put::Changed => Done::Left(Left::Raced),
            Put::Blocked(why) => Done::Left(Left::Blocked(why)),
        })
    }

    /// Sends what is to go, first what makes room for what comes.
    fn push(&mut self, plan: &Plan, report: &mut Report) -> Result<(), SyncError> {
        let order = |step: &Step| match step {
            Step::DeleteThere(_) => Some(0),
            Step::Move(..) => Some(1),
            Step::Update(_) => Some(2),
            Step::Create => Some(3),
            _ => None,
        };
        let mut ordered: Vec<(u8, &String, &Step)> =
            plan.steps.iter().filter_map(|(path, step)| Some((order(step)?, path, step))).collect();
        ordered.sort_by_key(|(order, path, _)| (*order, *path));
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for (_, path, step) in ordered {
            let Some(upload) = self.upload(plan, path, step) else {
                report.add(path, Done::Left(Left::Settling));
                continue;
            };
            if batch.len() == CHANGES || bytes + upload.size_bytes > CHANGES_BYTES {
                self.send(&std::mem::take(&mut batch), report)?;
                self.keep()?;
                bytes = 0;
            }
            bytes += upload.size_bytes;
            batch.push(upload);
        }
        self.send(&batch, report)
    }

    /// What is sent for a step; `None` where the file is not the one that was looked at.
    fn upload(&self, plan: &Plan, path: &str, step: &Step) -> Option<Upload> {
        let (hash, stat) = plan.local(path);
        let stat = plan.scan.recognisable(stat);
        let text = || self.folder.text(path, hash?);
        let (change, size_bytes, done) = match step {
            Step::Create => {
                let text = text()?;
                let size = text.len();
                (json!({"op": "create", "path": path, "content": text}), size, Done::Created)
            }
            Step::Update(expected) => {
                let text = text()?;
                let (size, expected) = (text.len(), expected.to_string());
                let change = json!({"op": "update", "path": path, "content": text, "expected_content_sha256": expected});
                (change, size, Done::Updated)
            }
            Step::DeleteThere(expected) => {
                let change =
                    json!({"op": "delete", "path": path, "expected_content_sha256": expected.to_string()});
                (change, 0, Done::DeletedThere)
            }
            Step::Move(from, expected) => {
                let expected = expected.to_string();
                let change = json!({"op": "update", "path": from, "new_path": path, "expected_content_sha256": expected});
                (change, 0, Done::Moved(from.clone()))
            }
            _ => return None,
        };
        Some(Upload { path: path.to_owned(), change, size_bytes, hash, stat, done })
    }

    /// Sends uploads as one changeset. Where one of them is refused all are, so halves are tried until it stands alone.
    fn send(&mut self, batch: &[Upload], report: &mut Report) -> Result<(), SyncError> {
        if batch.is_empty() {
            return Ok(());
        }
        let changes: Vec<&Value> = batch.iter().map(|upload| &upload.change).collect();
        match remote::change(&self.client, &self.options.store, &changes) {
            Ok(()) => batch.iter().for_each(|upload| self.sent(upload, report)),
            Err(error) if !refuses_one(&error) => return Err(error.into()),
            Err(error) => match batch {
                [one] => {
                    let left = self.refused(one, &error);
                    report.add(&*one.path, Done::Left(left));
                }
                several => {
                    let (first, second) = several.split_at(several.len() / 2);
                    self.send(first, report)?;
                    self.send(second, report)?;
                }
            },
        }
        Ok(())
    }

    fn sent(&mut self, upload: &Upload, report: &mut Report) {
        match &upload.done {
            Done::DeletedThere => {
                self.forget(&upload.path);
                self.deleted_at = Some(Instant::now());
            }
            Done::Moved(from) => self.forget(from),
            _ => {}
        }
        if let (Some(hash), false) = (upload.hash, upload.done == Done::DeletedThere) {
            self.know(&upload.path, hash, upload.stat);
        }
        self.collided.remove(&upload.path);
        report.add(&*upload.path, upload.done.clone());
    }

    /// Which of the worker's cases a refusal is: somebody was quicker, or it will be refused again.
    fn refused(&mut self, upload: &Upload, error: &ClientError) -> Left {
        let taken = error.status() == Some(409) && upload.done == Done::Created;
        let quicker = error.is_precondition()
            || matches!(error.status(), Some(404 | 412))
            || (taken && self.collided.insert(upload.path.clone()));
        if quicker {
            return Left::Raced;
        }
        let message = error.to_string();
        if let Some(sha256) = upload.hash {
            self.state.refused.insert(upload.path.clone(), Refusal { sha256, message: message.clone() });
            self.unsaved = true;
        }
        Left::Refused(message)
    }
}

/// A change of the store for one file.
struct Upload {
    path: String,
    change: Value,
    size_bytes: usize,
    hash: Option<Sha256>,
    stat: Option<Stat>,
    done: Done,
}

/// Whether a refusal is about one of the changes, not about who asks or when.
fn refuses_one(error: &ClientError) -> bool {
    matches!(error.status(), Some(400 | 404 | 409 | 412 | 413 | 422))
}

/// What a pass would do, as if everything went well.
fn announce(plan: &Plan, report: &mut Report) {
    for (path, step) in &plan.steps {
        let done = match step {
            Step::Pull => Done::Pulled,
            Step::Displace => Done::Displaced(PathBuf::new()),
            Step::RemoveHere => Done::RemovedHere,
            Step::Create => Done::Created,
            Step::Update(_) => Done::Updated,
            Step::DeleteThere(_) => Done::DeletedThere,
            Step::Move(from, _) => Done::Moved(from.clone()),
            Step::Same => {
                report.same += usize::from(plan.scan.entries.contains_key(path));
                continue;
            }
            Step::ReadOnly | Step::Unfit(_) | Step::HoldBack => continue,
        };
        report.add(path, done);
    }
}
