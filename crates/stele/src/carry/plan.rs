//! What becomes of a store that is told which files it should hold: judged as a whole before the first change, and
//! carried out in changesets.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value, json};
use stele_client::Store;
use stele_core::hash::Sha256;
use stele_core::path::MemoryPath;

use super::fetch::{self, Present};
use super::slices::{Change, cut};
use super::{judge, shown};
use crate::cli::Conflict;
use crate::commands::Session;
use crate::commands::history::{Side, print_diff};
use crate::commands::walk::{MOST_BYTES, Unfit, text_up_to};
use crate::failure::{Class, class, fail};
use crate::output::{Report, cell, colours, complain, count, progress};
use stele_archive::markdown;

/// Most bytes that front matter may add to a content: a summary of 512 characters, escaped.
const FRONT_MATTER: u64 = 8 * 1024;

/// A file that shall be a memory.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) path: MemoryPath,
    pub(super) file: PathBuf,
    pub(super) sha256: String,
    pub(super) size_bytes: usize,
    /// What it says of itself; a file without front matter says nothing, and changes no summary.
    pub(super) summary: Option<String>,
}

impl Wanted {
    /// The file as the memory at `path`; one sentence about one that cannot be.
    pub(super) fn read(file: PathBuf, path: &str) -> Result<Self, Unfit> {
        let judged = MemoryPath::parse(path).map_err(|error| format!("its path {error}"));
        match judged.and_then(|path| Ok((path, document(&file)?))) {
            Ok((path, (summary, content))) => {
                let sha256 = Sha256::of(content.as_bytes()).to_string();
                Ok(Self { path, file, sha256, size_bytes: content.len(), summary })
            }
            Err(why) => Err(Unfit { file, why }),
        }
    }
}

/// Summary and content of a file.
fn document(file: &std::path::Path) -> Result<(Option<String>, String), String> {
    let text = text_up_to(file, MOST_BYTES + FRONT_MATTER)?;
    let parts = markdown::decode(&text);
    judge_parts(parts.summary.as_deref(), parts.content)?;
    Ok((parts.summary, parts.content.to_owned()))
}

/// Whether summary and content keep to the caps.
pub(super) fn judge_parts(summary: Option<&str>, content: &str) -> Result<(), String> {
    let limits = stele_core::limits::Limits::default();
    if content.len() as u64 > MOST_BYTES {
        return Err(format!("is larger than a memory may be ({MOST_BYTES} bytes)"));
    }
    if content.contains('\0') || summary.is_some_and(|summary| summary.contains('\0')) {
        return Err("holds a NUL".into());
    }
    match summary.map_or(0, |summary| summary.chars().count()) {
        long if long > limits.summary_chars => {
            Err(format!("has a summary of {long} characters, at most {} are taken", limits.summary_chars))
        }
        _ => Ok(()),
    }
}

/// What is asked for where files and memories differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) on_conflict: Conflict,
    pub(super) delete_missing: bool,
    pub(super) partial: bool,
    pub(super) dry_run: bool,
}

/// What becomes of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Create,
    Update,
    Unchanged,
    Skip,
    Delete,
    /// It differs, and nobody said what shall win.
    Conflict,
}

impl Step {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Unchanged => "unchanged",
            Self::Skip => "skip",
            Self::Delete => "delete",
            Self::Conflict => "conflict",
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Create => "created",
            Self::Update => "updated",
            Self::Unchanged => "unchanged",
            Self::Skip => "skipped",
            Self::Delete => "deleted",
            Self::Conflict => "in conflict",
        }
    }
}

/// What becomes of every path, by path, and what stands in the way.
#[derive(Debug, Default)]
struct Plan<'w> {
    rows: Vec<(String, Step, Option<&'w Wanted>)>,
    conflicts: Vec<(String, String)>,
}

impl<'w> Plan<'w> {
    fn of(wanted: &'w [Wanted], there: &BTreeMap<String, Present>, how: How) -> Self {
        let mut plan = Self::default();
        let kept: BTreeSet<&str> = wanted.iter().map(|file| file.path.as_str()).collect();
        let mut standing = Standing::default();
        for path in there.keys().map(String::as_str) {
            if how.delete_missing && !kept.contains(path) {
                plan.rows.push((path.into(), Step::Delete, None));
            } else {
                standing.insert(path);
            }
        }
        let mut before: Option<&Wanted> = None;
        for file in wanted {
            let path = file.path.as_str();
            if let Some(other) = before.replace(file).filter(|other| other.path == file.path) {
                let why = format!("would be of two files, {} and {}", shown(&other.file), shown(&file.file));
                plan.conflicts.push((path.into(), why));
                continue;
            }
            let step = match there.get(path) {
                None => match standing.overlapping(&file.path) {
                    None => Step::Create,
                    Some(_) if how.on_conflict == Conflict::Skip => Step::Skip,
                    Some(other) => {
                        plan.conflicts.push((path.into(), format!("cannot be beside the memory {other}")));
                        continue;
                    }
                },
                Some(now) if same(file, now) => Step::Unchanged,
                Some(_) => match how.on_conflict {
                    Conflict::Overwrite => Step::Update,
                    Conflict::Skip => Step::Skip,
                    Conflict::Refuse => {
                        plan.conflicts.push((path.into(), "is there with another text".into()));
                        Step::Conflict
                    }
                },
            };
            if step == Step::Create {
                standing.insert(path);
            }
            plan.rows.push((path.into(), step, Some(file)));
        }
        plan.rows.sort_by(|a, b| a.0.cmp(&b.0));
        plan
    }

    /// Deletions first, which make room for what comes; creations last.
    fn changes(&self, there: &BTreeMap<String, Present>) -> Vec<Change<&'w Wanted>> {
        let of = |step: Step| self.rows.iter().filter(move |row| row.1 == step);
        let now = |path: &str| there.get(path).map(|now| (now.sha256.as_str(), now.summary.as_str()));
        let mut changes = Vec::new();
        for (path, _, _) in of(Step::Delete) {
            changes.extend(now(path).map(|(sha256, _)| Change::delete(path, sha256)));
        }
        for (path, _, file) in of(Step::Update) {
            let (Some(file), Some((sha256, summary))) = (file, now(path)) else { continue };
            let content = (file.sha256 != sha256).then_some((*file, file.size_bytes));
            let summary = file.summary.as_deref().filter(|new| *new != summary);
            changes.push(Change::update(path, sha256, summary, content));
        }
        for (path, _, file) in of(Step::Create) {
            changes.extend(
                file.map(|file| Change::create(path, file.summary.as_deref(), (file, file.size_bytes))),
            );
        }
        changes
    }

    fn count(&self, step: Step) -> usize {
        self.rows.iter().filter(|row| row.1 == step).count()
    }
}

fn same(file: &Wanted, now: &Present) -> bool {
    file.sha256 == now.sha256 && file.summary.as_ref().is_none_or(|summary| *summary == now.summary)
}

/// Paths that are taken, to ask what is in the way of another one.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing(BTreeSet<String>);

impl Standing {
    pub(super) fn insert(&mut self, path: &str) {
        self.0.insert(path.to_owned());
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.0.remove(path);
    }

    /// The path that another one cannot be beside: the same, above it or below it.
    pub(super) fn overlapping(&self, path: &MemoryPath) -> Option<&str> {
        let at = |path: &str| self.0.get(path).map(String::as_str);
        at(path.as_str()).or_else(|| path.ancestors().find_map(at)).or_else(|| {
            let directory = path.as_directory();
            let behind = (Bound::Included(directory.as_str()), Bound::Unbounded);
            let below = self.0.range::<str, _>(behind).next()?;
            below.starts_with(&directory).then_some(below.as_str())
        })
    }
}

impl<'p> FromIterator<&'p str> for Standing {
    fn from_iter<I: IntoIterator<Item = &'p str>>(paths: I) -> Self {
        Self(paths.into_iter().map(str::to_owned).collect())
    }
}

/// Takes files into a store. `unfit` are those that cannot be memories; `reason` goes with every change.
pub(super) fn carry_in(
    session: &Session,
    (store, prefix): (&Store, &str),
    (wanted, unfit): (&[Wanted], &[Unfit]),
    how: How,
    reason: &str,
) -> anyhow::Result<()> {
    judge(unfit, how.partial, "nothing was sent")?;
    let now = fetch::Now::of(&session.client, store)?;
    let below = now.below(prefix);
    // What lies outside of the prefix can stand in the way, but is never touched.
    let mut plan = Plan::of(wanted, &below, how);
    let outside: Standing =
        now.memories.keys().map(String::as_str).filter(|path| !path.starts_with(prefix)).collect();
    for file in wanted {
        if let Some(other) = outside.overlapping(&file.path) {
            plan.conflicts.push((file.path.as_str().into(), format!("cannot be beside the memory {other}")));
        }
    }
    let mut report = Report::default();
    if how.dry_run && !session.json {
        show(session, store, &plan, &below, &mut report)?;
    }
    for (path, why) in &plan.conflicts {
        complain(&format!("{}:{} {why}", cell(&store.name), cell(path)));
    }
    if !plan.conflicts.is_empty() {
        let number = count(plan.conflicts.len(), "file conflicts", "files conflict");
        let message = format!(
            "nothing was sent: {number} with what is there; --on-conflict skip leaves that, --on-conflict overwrite \
             replaces its text"
        );
        return Err(fail(Class::Conflict, message));
    }
    now.judge_number(store, now.memories.len() + plan.count(Step::Create) - plan.count(Step::Delete))?;
    let changes = plan.changes(&below);
    if !how.dry_run {
        send(session, store, (&changes, &below), how.partial, reason)?;
    }
    if session.json {
        let rows: Vec<Value> =
            plan.rows.iter().map(|(path, step, _)| json!({"path": path, "step": step.name()})).collect();
        let left: Vec<Value> =
            unfit.iter().map(|one| json!({"file": shown(&one.file), "why": one.why})).collect();
        report.json(&json!({"data": rows, "dry_run": how.dry_run, "left_out": left}));
        return report.end();
    }
    let number = |step: Step| format!("{} {}", plan.count(step), step.done());
    let steps =
        [Step::Create, Step::Update, Step::Delete, Step::Unchanged, Step::Skip].map(number).join(", ");
    let dry = if how.dry_run { "dry run: " } else { "" };
    report.line(&format!("{dry}{}: {steps}, {} left out", store.name, unfit.len()));
    report.end()
}

/// Prints what would change, as `stele diff` does.
fn show(
    session: &Session,
    store: &Store,
    plan: &Plan<'_>,
    there: &BTreeMap<String, Present>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let changing = |step: &Step| !matches!(step, Step::Unchanged | Step::Skip);
    let rows: Vec<_> = plan.rows.iter().filter(|(_, step, _)| changing(step)).collect();
    for rows in rows.chunks(200) {
        let ids = rows.iter().filter_map(|(path, _, _)| Some(there.get(path)?.memory.clone())).collect();
        let texts = fetch::texts(&session.client, store, ids)?;
        for (path, step, file) in rows {
            report.line(&format!("would {} {}:{}", step.name(), cell(&store.name), cell(path)));
            let now = there.get(path).and_then(|now| texts.get(&now.memory));
            let old = now.map_or("nothing", |_| "present");
            let side = |name: &str, text: String| Side { name: name.into(), path: path.clone(), text };
            let before =
                now.map(|text| whole(text.summary.as_deref(), text.content.as_deref())).unwrap_or_default();
            let after = match file {
                None => side("nothing", String::new()),
                Some(file) => {
                    let (summary, content) = document(&file.file).map_err(|why| changed(file, &why))?;
                    let kept = summary.as_deref().or(now.and_then(|now| now.summary.as_deref()));
                    side("file", whole(kept, Some(&content)))
                }
            };
            print_diff(&side(old, before), &after, colours())?;
        }
    }
    Ok(())
}

/// A memory as its file would be.
fn whole(summary: Option<&str>, content: Option<&str>) -> String {
    markdown::encode(summary.unwrap_or_default(), content.unwrap_or_default()).into_owned()
}

fn changed(file: &Wanted, why: &str) -> anyhow::Error {
    fail(Class::Conflict, format!("{} {why}: it changed while it was read", shown(&file.file)))
}

/// Sends changes in as many changesets as it takes. Where the server refuses a later one, those before it are taken
/// back, unless a part is better than nothing.
fn send(
    session: &Session,
    store: &Store,
    (changes, there): (&[Change<&Wanted>], &BTreeMap<String, Present>),
    partial: bool,
    reason: &str,
) -> anyhow::Result<()> {
    let bar = progress(changes.len() as u64);
    let slices = cut(changes);
    let mut done = 0;
    for slice in &slices {
        let sent = slice.iter().map(body).collect::<anyhow::Result<Vec<_>>>();
        let sent = sent.and_then(|bodies| Ok(session.client.changeset(&store.id, Some(reason), &bodies)?));
        if let Err(error) = sent {
            bar.finish_and_clear();
            let refused = matches!(class(&error), Class::Refused | Class::Conflict | Class::Forbidden);
            return Err(error.context(match done {
                0 => "nothing was changed".to_owned(),
                _ if refused && !partial => {
                    take_back(session, store, &undone(&changes[..done], there), reason)
                        .context("a part of the import stayed, since it could not be taken back")?;
                    format!("the server refused a later part; the first {done} changes were taken back")
                }
                _ => format!("{done} of {} changes were made; the same command goes on", changes.len()),
            }));
        }
        done += slice.len();
        bar.inc(slice.len() as u64);
    }
    bar.finish_and_clear();
    Ok(())
}

/// A change as the route takes it, with what its file says, if that is still what was compared.
fn body(change: &Change<&Wanted>) -> anyhow::Result<Value> {
    let Some((file, _)) = &change.content else { return Ok(change.with_content(None)) };
    let (_, content) = document(&file.file).map_err(|why| changed(file, &why))?;
    if Sha256::of(content.as_bytes()).to_string() != file.sha256 {
        return Err(changed(file, "has another text"));
    }
    Ok(change.with_content(Some(content)))
}

/// What undoes changes, the last one first; contents are those of versions.
fn undone(changes: &[Change<&Wanted>], there: &BTreeMap<String, Present>) -> Vec<Change<String>> {
    let undo = |change: &Change<&Wanted>| {
        let path = change.body["path"].as_str()?;
        let new = change.content.as_ref().map(|(file, _)| file.sha256.as_str());
        let Some(old) = there.get(path) else { return Some(Change::delete(path, new?)) };
        let content = Some((old.version.clone(), old.size_bytes));
        if change.body["op"] == "delete" {
            return Some(Change::create(path, Some(&old.summary), content?));
        }
        let summary = change.body.get("summary").map(|_| old.summary.as_str());
        Some(Change::update(path, new.unwrap_or(&old.sha256), summary, content.filter(|_| new.is_some())))
    };
    changes.iter().rev().filter_map(undo).collect()
}

fn take_back(
    session: &Session,
    store: &Store,
    changes: &[Change<String>],
    reason: &str,
) -> anyhow::Result<()> {
    let reason = format!("Taken back. {reason}");
    for slice in cut(changes) {
        let versions = slice.iter().filter_map(|change| Some(change.content.as_ref()?.0.clone())).collect();
        let mut texts = BTreeMap::new();
        for batch in session.client.version_texts(&fetch::uuid(store)?, versions) {
            texts.extend(batch?.into_iter().map(|text| (text.memory_version_id, text.content)));
        }
        let body = |change: &Change<String>| {
            let content = change.content.as_ref().map(|(version, _)| {
                texts
                    .get(version)
                    .cloned()
                    .flatten()
                    .with_context(|| format!("the version {version} has no text any more"))
            });
            Ok(change.with_content(content.transpose()?))
        };
        let bodies = slice.iter().map(body).collect::<anyhow::Result<Vec<_>>>()?;
        session.client.changeset(&store.id, Some(&reason), &bodies)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(path: &str, text: &str, summary: Option<&str>) -> Wanted {
        Wanted {
            path: MemoryPath::parse(path).expect("a path"),
            file: PathBuf::from(path),
            sha256: Sha256::of(text.as_bytes()).to_string(),
            size_bytes: text.len(),
            summary: summary.map(Into::into),
        }
    }

    fn there(memories: &[(&str, &str, &str)]) -> BTreeMap<String, Present> {
        let present = memories.iter().map(|(path, text, summary)| {
            let sha256 = Sha256::of(text.as_bytes()).to_string();
            let (memory, version) = ((*path).to_owned(), format!("version of {path}"));
            let (size_bytes, summary) = (text.len(), (*summary).to_owned());
            (memory.clone(), Present { memory, version, sha256, size_bytes, summary })
        });
        present.collect()
    }

    fn how(on_conflict: Conflict, delete_missing: bool) -> How {
        How { on_conflict, delete_missing, partial: false, dry_run: false }
    }

    fn steps(plan: &Plan<'_>) -> Vec<(String, &'static str)> {
        plan.rows.iter().map(|(path, step, _)| (path.clone(), step.name())).collect()
    }

    #[test]
    fn what_differs_is_refused_skipped_or_written_over() {
        let files = [wanted("/a", "new", None), wanted("/b", "b", None), wanted("/c", "c", Some("says"))];
        let there = there(&[("/a", "old", ""), ("/b", "b", "kept"), ("/c", "c", "said")]);
        let of = |conflict| Plan::of(&files, &there, how(conflict, false));
        let refused = of(Conflict::Refuse);
        assert_eq!(
            steps(&refused).iter().map(|one| one.1).collect::<Vec<_>>(),
            ["conflict", "unchanged", "conflict"]
        );
        assert_eq!(refused.conflicts.iter().map(|one| one.0.as_str()).collect::<Vec<_>>(), ["/a", "/c"]);
        let names = |plan: &Plan<'_>| steps(plan).iter().map(|one| one.1).collect::<Vec<_>>();
        assert_eq!(names(&of(Conflict::Skip)), ["skip", "unchanged", "skip"]);
        let over = of(Conflict::Overwrite);
        assert_eq!(names(&over), ["update", "unchanged", "update"]);
        let changes = over.changes(&there);
        assert!(changes[0].content.is_some() && changes[0].body.get("summary").is_none());
        assert!(changes[1].content.is_none() && changes[1].body["summary"] == "says");
    }

    #[test]
    fn a_file_where_a_directory_is_waits_for_its_deletion() {
        let files = [wanted("/a.md/x", "x", None), wanted("/d", "d", None)];
        let there = there(&[("/a.md", "a", ""), ("/d/e", "e", ""), ("/d0", "0", "")]);
        let blocked = Plan::of(&files, &there, how(Conflict::Overwrite, false));
        assert_eq!(blocked.conflicts.len(), 2, "{:?}", blocked.conflicts);
        let plan = Plan::of(&files, &there, how(Conflict::Refuse, true));
        assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
        let ops: Vec<_> = plan.changes(&there).iter().map(|change| change.body["op"].clone()).collect();
        assert_eq!(ops, ["delete", "delete", "delete", "create", "create"]);
    }

    #[test]
    fn two_files_for_one_path_are_a_conflict() {
        let files = [wanted("/a", "x", None), wanted("/a", "x", None)];
        assert_eq!(Plan::of(&files, &BTreeMap::new(), how(Conflict::Overwrite, true)).conflicts.len(), 1);
    }

    #[test]
    fn what_was_done_is_undone_in_the_opposite_order() {
        let files = [wanted("/a", "new", None), wanted("/b", "b", Some("new")), wanted("/d/e", "e", None)];
        let there = there(&[("/a", "old", "kept"), ("/b", "b", "old"), ("/d", "d", "of d")]);
        let plan = Plan::of(&files, &there, how(Conflict::Overwrite, true));
        let changes = plan.changes(&there);
        let undo = undone(&changes, &there);
        let ops: Vec<_> =
            undo.iter().map(|change| (change.body["op"].clone(), change.body["path"].clone())).collect();
        let pairs = [("delete", "/d/e"), ("update", "/b"), ("update", "/a"), ("create", "/d")];
        assert_eq!(ops, pairs.map(|(op, path)| (op.into(), path.into())));
        assert_eq!(undo[0].body["expected_content_sha256"], files[2].sha256);
        assert!(undo[1].content.is_none() && undo[1].body["summary"] == "old");
        assert_eq!(undo[2].content, Some(("version of /a".into(), 3)));
        assert_eq!(undo[2].body["expected_content_sha256"], files[0].sha256);
        assert_eq!(
            (&undo[3].body["summary"], &undo[3].content),
            (&"of d".into(), &Some(("version of /d".into(), 1)))
        );
    }

    #[test]
    fn names_that_only_begin_alike_block_nothing() {
        let standing = |paths: &[&'static str]| paths.iter().copied().collect::<Standing>();
        let path = |text: &str| MemoryPath::parse(text).expect("a path");
        let alike = standing(&["/a_b", "/a.md", "/a0"]);
        assert_eq!(alike.overlapping(&path("/a")), None);
        assert_eq!(alike.overlapping(&path("/a/b")), None);
        assert_eq!(alike.overlapping(&path("/a.md/b/c")), Some("/a.md"));
        assert_eq!(alike.overlapping(&path("/a0")), Some("/a0"));
        assert_eq!(standing(&["/x/y/z"]).overlapping(&path("/x")), Some("/x/y/z"));
    }
}
