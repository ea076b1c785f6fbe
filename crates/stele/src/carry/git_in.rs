//! `stele import --git`: the history of a repository as the history of a store.
//!
//! **A commit is a changeset**: what it changed against its first parent, with its message, author and date as the
//! reason. Merges so bring in at once what they merged. The last lines of a reason name the commit; that is how a second
//! import knows where to go on, also one after a break, since a changeset is there wholly or not at all.
//!
//! The whole history is looked at before the first change. A file that cannot be a memory counts as absent where
//! `--partial` allows it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Stdio;

use anyhow::Context;
use serde_json::{Value, json};
use stele_archive::markdown;
use stele_client::Store;
use stele_core::hash::Sha256;
use stele_core::path::MemoryPath;

use super::git::{Git, Object, Objects};
use super::plan::{Standing, judge_parts};
use super::slices::{Change, cut};
use super::{fetch, judge, shown};
use crate::cli::CarryIn;
use crate::commands::walk::{MOST_BYTES, Unfit};
use crate::commands::{Session, resolve};
use crate::failure::{Class, fail};
use crate::output::{Report, cell, complain, count, progress};

const COMMIT: &str = "Git-Commit";
const AUTHOR: &str = "Git-Author";
const DATE: &str = "Git-Date";
/// Most characters of a reason. DESIGN 7.
const REASON_CHARS: usize = 4_096;
/// Most bytes of a file with its front matter.
const FILE_BYTES: u64 = MOST_BYTES + 8 * 1024;
/// Most bytes of a commit's own text that is read.
const COMMIT_BYTES: u64 = 1024 * 1024;

/// A file of a commit as a memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Fit {
    blob: String,
    sha256: String,
    summary: String,
    size_bytes: usize,
}

/// One line of `git diff-tree`.
#[derive(Debug, PartialEq, Eq)]
struct Touched {
    /// Where it was; none of what is new.
    from: Option<Vec<u8>>,
    /// Where it is, what kind of entry it is and its object; none of what is gone.
    to: Option<(Vec<u8>, String, String)>,
}

/// What a commit does to the memories.
struct Step {
    commit: String,
    changes: Vec<Change<String>>,
}

pub(super) fn import(session: &Session, args: &CarryIn) -> anyhow::Result<()> {
    let Some(git) = Git::open(&args.source)? else {
        return Err(fail(Class::NotFound, format!("{} is not a git repository", shown(&args.source))));
    };
    let Some(tip) = git.commit(&args.branch)? else {
        let message = format!("there is no commit {:?} in {}", args.branch, shown(&args.source));
        return Err(fail(Class::NotFound, message));
    };
    let prefix = resolve::prefix(&args.store);
    let store = resolve::store(&session.client, &args.store.store)?;
    let mut history = History::read(&git, &tip, &prefix)?;
    let unfit: Vec<Unfit> =
        history.unfit.iter().map(|(file, why)| Unfit { file: file.into(), why: why.clone() }).collect();
    judge(&unfit, args.partial, "nothing was sent")?;
    let done = done_before(session, &store, &prefix)?;
    let from = history.go_on(session, &store, &prefix, done.as_ref())?;
    let steps = history.steps.split_off(from);
    let skip_parts = done.map_or(0, |done| done.parts_done());
    let mut report = Report::default();
    let mut objects = git.objects()?;
    let (mut sent, mut changed) = (0, 0);
    let bar = progress(steps.len() as u64);
    for (number, step) in steps.iter().enumerate() {
        let about = About::read(&mut objects, &step.commit)?;
        let parts = cut(&step.changes);
        let skip = if number == 0 { skip_parts } else { 0 };
        if args.dry_run && !session.json {
            bar.suspend(|| {
                let changes = count(step.changes.len(), "change", "changes");
                report.line(&format!(
                    "would take {} {} ({changes})",
                    &step.commit[..12],
                    cell(about.subject())
                ));
            });
        }
        if !args.dry_run {
            for (part, changes) in parts.iter().enumerate().skip(skip) {
                let of = (parts.len() > 1).then_some((part + 1, parts.len()));
                let reason = about.reason(&step.commit, of);
                let bodies = bodies(&mut objects, changes)?;
                session.client.changeset(&store.id, Some(&reason), &bodies).map_err(|error| {
                    bar.finish_and_clear();
                    let message = format!(
                        "the import stopped at the commit {}, when {} had been taken: the same command goes on there",
                        &step.commit[..12],
                        count(sent, "commit", "commits")
                    );
                    anyhow::Error::new(error).context(message)
                })?;
            }
        }
        sent += 1;
        changed += step.changes.len();
        bar.inc(1);
    }
    bar.finish_and_clear();
    if session.json {
        report.json(&json!({
            "commit": tip, "new_commits": sent, "changes": changed, "left_out": unfit.len(), "dry_run": args.dry_run,
        }));
        return report.end();
    }
    let dry = if args.dry_run { "dry run: " } else { "" };
    let (commits, changes) = (count(sent, "new commit", "new commits"), count(changed, "change", "changes"));
    report.line(&format!("{dry}{}: {commits} with {changes}, {} left out", store.name, unfit.len()));
    report.end()
}

/// The changes as the route takes them, with their contents.
fn bodies(objects: &mut Objects, changes: &[Change<String>]) -> anyhow::Result<Vec<Value>> {
    let body = |change: &Change<String>| {
        let content = match &change.content {
            None => None,
            Some((blob, _)) => Some(text_of(objects, blob)?.1),
        };
        Ok(change.with_content(content))
    };
    changes.iter().map(body).collect()
}

/// Summary and content of a blob that was looked at before.
fn text_of(objects: &mut Objects, blob: &str) -> anyhow::Result<(Option<String>, String)> {
    let Object::Whole(bytes) = objects.get(blob, "blob", FILE_BYTES)? else {
        return Err(fail(Class::Conflict, format!("the object {blob} is gone from the repository")));
    };
    let text = String::from_utf8(bytes).context("an object changed its bytes")?;
    let parts = markdown::decode(&text);
    Ok((parts.summary, parts.content.to_owned()))
}

/// The newest commit that an earlier import took from a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Done {
    commit: String,
    /// Which part of how many, where it was too large for one changeset.
    part: Option<(usize, usize)>,
}

impl Done {
    /// What the trailer of a reason says: `<commit>`, or `<commit> part 1 of 3`.
    fn parse(value: &str) -> Option<Self> {
        let words: Vec<&str> = value.split(' ').collect();
        match words.as_slice() {
            [commit] => Some(Self { commit: (*commit).into(), part: None }),
            [commit, "part", part, "of", parts] => {
                Some(Self { commit: (*commit).into(), part: Some((part.parse().ok()?, parts.parse().ok()?)) })
            }
            _ => None,
        }
    }

    fn is_whole(&self) -> bool {
        self.part.is_none_or(|(part, parts)| part == parts)
    }

    /// How many parts of its commit need not be sent again.
    fn parts_done(&self) -> usize {
        self.part.filter(|(part, parts)| part < parts).map_or(0, |(part, _)| part)
    }
}

/// What the newest version that an import made below `prefix` tells; `None` where none did.
fn done_before(session: &Session, store: &Store, prefix: &str) -> anyhow::Result<Option<Done>> {
    for version in session.client.history(&fetch::uuid(store)?) {
        let version = version?;
        if !version.path.starts_with(prefix) {
            continue;
        }
        let value = version.rationale.as_deref().and_then(|reason| super::git_out::trailer(reason, COMMIT));
        if let Some(done) = value.and_then(Done::parse) {
            return Ok(Some(done));
        }
    }
    Ok(None)
}

/// The commits that change memories, oldest first.
struct History {
    steps: Vec<Step>,
    /// Every commit, oldest first, with how many steps there are up to and with it, and what the memories are then.
    commits: Vec<(String, usize)>,
    unfit: BTreeMap<String, String>,
    /// How each path changed, by the number of the step: what is not there any more is none.
    tree: Vec<Vec<(String, Option<Fit>)>>,
}

impl History {
    /// Looks at every commit from the first to `tip`.
    fn read(git: &Git, tip: &str, prefix: &str) -> anyhow::Result<Self> {
        let list =
            git.output(["rev-list", "--first-parent", "--reverse", "--parents", tip], "list the commits")?;
        let list = String::from_utf8(list).context("git gave ids that are no text")?;
        let mut input = String::new();
        let mut order = Vec::new();
        for line in list.lines() {
            let mut ids = line.split(' ');
            let Some(commit) = ids.next() else { continue };
            let parent = ids.next().map(|parent| format!(" {parent}")).unwrap_or_default();
            let _ = writeln!(input, "{commit}{parent}");
            order.push(commit.to_owned());
        }
        let mut history =
            Self { steps: Vec::new(), commits: Vec::new(), unfit: BTreeMap::new(), tree: Vec::new() };
        let mut reader =
            Reader { objects: git.objects()?, known: HashMap::new(), prefix, present: BTreeMap::new() };
        let mut diffs = differences(git, input)?;
        let bar = progress(order.len() as u64);
        for commit in order {
            let touched = diffs.remove(&commit).unwrap_or_default();
            let (changes, tree) = reader.step(touched, &mut history.unfit)?;
            if !changes.is_empty() {
                history.steps.push(Step { commit: commit.clone(), changes });
                history.tree.push(tree);
            }
            history.commits.push((commit, history.steps.len()));
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(history)
    }

    /// The number of the step to go on with; refused where the store is not what the repository left there.
    fn go_on(
        &self,
        session: &Session,
        store: &Store,
        prefix: &str,
        done: Option<&Done>,
    ) -> anyhow::Result<usize> {
        let (from, expected_steps) = match done {
            None => (0, 0),
            Some(done) => {
                let at = self.commits.iter().find(|(commit, _)| *commit == done.commit);
                let Some((_, steps)) = at else {
                    let message = format!(
                        "{} holds what was taken up to the commit {}, which is not in this history: was it rewritten? A new \
                         store takes it from the start",
                        store.name,
                        cell(&done.commit)
                    );
                    return Err(fail(Class::Conflict, message));
                };
                // One of which some parts are missing is gone on with, and cannot be compared before.
                if done.is_whole() { (*steps, *steps) } else { return Ok(steps - 1) }
            }
        };
        let mut expected: BTreeMap<&str, &Fit> = BTreeMap::new();
        for (path, fit) in self.tree[..expected_steps].iter().flatten() {
            match fit {
                Some(fit) => drop(expected.insert(path, fit)),
                None => drop(expected.remove(path.as_str())),
            }
        }
        let now = fetch::Now::of(&session.client, store)?;
        let there = now.below(prefix);
        let paths: BTreeSet<&str> =
            expected.keys().copied().chain(there.keys().map(String::as_str)).collect();
        let differing = paths.into_iter().filter(|path| {
            let (is, should) =
                (there.get(*path).map(|now| &now.sha256), expected.get(path).map(|fit| &fit.sha256));
            is != should
        });
        let differing: Vec<&str> = differing.collect();
        for path in differing.iter().take(20) {
            complain(&format!("{}:{} is not as the repository left it", cell(&store.name), cell(path)));
        }
        if differing.is_empty() {
            now.judge_number(store, now.memories.len() - there.len() + self.most(from))?;
            return Ok(from);
        }
        let message = format!(
            "nothing was sent: {} in {} that no import of this history made. Import into a new store, or below a directory \
             of its own: --store STORE:/directory/",
            count(differing.len(), "memory differs", "memories differ"),
            store.name
        );
        Err(fail(Class::Conflict, message))
    }

    /// How many memories there are at most, once so many steps are made.
    fn most(&self, from: usize) -> usize {
        let mut present = BTreeSet::new();
        let mut most = 0;
        for (number, tree) in self.tree.iter().enumerate() {
            for (path, fit) in tree {
                match fit {
                    Some(_) => drop(present.insert(path)),
                    None => drop(present.remove(path)),
                }
            }
            if number >= from {
                most = most.max(present.len());
            }
        }
        most
    }
}

/// What each commit touched.
fn differences(git: &Git, input: String) -> anyhow::Result<HashMap<String, Vec<Touched>>> {
    let mut child = git
        .command([
            "diff-tree",
            "--stdin",
            "-r",
            "-z",
            "--raw",
            "-M",
            "--root",
            "--no-ext-diff",
            "--no-textconv",
            "--no-abbrev",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run git")?;
    let mut stdin = child.stdin.take().context("git has no input")?;
    // Both pipes fill: one writes while the other is read.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let done = child.wait_with_output().context("cannot wait for git")?;
    let written = writer.join().map_err(|_| anyhow::anyhow!("the writer to git broke"))?;
    if !done.status.success() || written.is_err() {
        let said = String::from_utf8_lossy(&done.stderr);
        let message = format!(
            "git cannot compare the commits: {}. Of a shallow clone, fetch the rest first: git fetch --unshallow",
            said.trim()
        );
        return Err(fail(Class::Refused, message));
    }
    parse_differences(&done.stdout)
}

fn parse_differences(bytes: &[u8]) -> anyhow::Result<HashMap<String, Vec<Touched>>> {
    const STRANGE: &str = "git compared commits in a way that is not understood";
    let mut diffs: HashMap<String, Vec<Touched>> = HashMap::new();
    let mut fields = bytes.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let mut current = None;
    while let Some(field) = fields.next() {
        let Some(record) = field.strip_prefix(b":") else {
            current = Some(String::from_utf8_lossy(field).trim().to_owned());
            continue;
        };
        let record = std::str::from_utf8(record).context(STRANGE)?;
        let words: Vec<&str> = record.split(' ').collect();
        let [_, mode, _, blob, status] = words[..] else { anyhow::bail!(STRANGE) };
        let path = fields.next().context(STRANGE)?.to_vec();
        let to = |path: Vec<u8>| Some((path, mode.to_owned(), blob.to_owned()));
        let touched = match status.as_bytes().first() {
            Some(b'A') => Touched { from: None, to: to(path) },
            Some(b'D') => Touched { from: Some(path), to: None },
            Some(b'R') => Touched { from: Some(path), to: to(fields.next().context(STRANGE)?.to_vec()) },
            Some(b'C') => Touched { from: None, to: to(fields.next().context(STRANGE)?.to_vec()) },
            Some(_) => Touched { from: Some(path.clone()), to: to(path) },
            None => anyhow::bail!(STRANGE),
        };
        diffs.entry(current.clone().context(STRANGE)?).or_default().push(touched);
    }
    Ok(diffs)
}

/// Reads what commits touch, and knows what the memories are in between.
struct Reader<'a> {
    objects: Objects,
    /// What was found of each blob, which many commits may share.
    known: HashMap<String, Result<Fit, String>>,
    prefix: &'a str,
    present: BTreeMap<String, Fit>,
}

impl Reader<'_> {
    /// The changes of one commit, in an order in which each can be made; and the paths that have something else now.
    #[expect(clippy::type_complexity, reason = "two lists that are taken apart at once")]
    fn step(
        &mut self,
        touched: Vec<Touched>,
        unfit: &mut BTreeMap<String, String>,
    ) -> anyhow::Result<(Vec<Change<String>>, Vec<(String, Option<Fit>)>)> {
        let mut after: BTreeMap<String, Option<Fit>> = BTreeMap::new();
        let mut moves = Vec::new();
        for Touched { from, to } in touched {
            let from = from.and_then(|from| self.path(&from).ok());
            if let Some(from) = from.as_ref().filter(|from| self.present.contains_key(from.as_str())) {
                after.entry(from.clone()).or_insert(None);
            }
            let Some((name, mode, blob)) = to else { continue };
            match self.judge(&name, &mode, &blob)? {
                Ok((path, fit)) => {
                    if let Some(from) = from.filter(|from| *from != path && self.present.contains_key(from)) {
                        moves.push((from, path.clone()));
                    }
                    after.insert(path, Some(fit));
                }
                Err(why) => drop(unfit.insert(String::from_utf8_lossy(&name).into_owned(), why)),
            }
        }
        let changes = ordered(&self.present, &after, moves);
        let mut tree = Vec::new();
        for (path, fit) in after {
            match &fit {
                Some(fit) => drop(self.present.insert(path.clone(), fit.clone())),
                None => drop(self.present.remove(&path)),
            }
            tree.push((path, fit));
        }
        Ok((changes, tree))
    }

    fn path(&self, name: &[u8]) -> Result<String, String> {
        let name = std::str::from_utf8(name).map_err(|_| "its name is not UTF-8".to_owned())?;
        let path = format!("{}{name}", self.prefix);
        MemoryPath::parse(&path).map_err(|error| format!("its path {error}"))?;
        Ok(path)
    }

    fn judge(
        &mut self,
        name: &[u8],
        mode: &str,
        blob: &str,
    ) -> anyhow::Result<Result<(String, Fit), String>> {
        let path = match self.path(name) {
            Ok(path) => path,
            Err(why) => return Ok(Err(why)),
        };
        match mode {
            "100644" | "100755" => {}
            "120000" => return Ok(Err("is a symbolic link".into())),
            "160000" => return Ok(Err("is a submodule".into())),
            _ => return Ok(Err("is no plain file".into())),
        }
        if !self.known.contains_key(blob) {
            let found = self.look(blob)?;
            self.known.insert(blob.to_owned(), found);
        }
        Ok(self.known[blob].clone().map(|fit| (path, fit)))
    }

    fn look(&mut self, blob: &str) -> anyhow::Result<Result<Fit, String>> {
        let bytes = match self.objects.get(blob, "blob", FILE_BYTES)? {
            Object::Whole(bytes) => bytes,
            Object::Large(_) => {
                return Ok(Err(format!("is larger than a memory may be ({MOST_BYTES} bytes)")));
            }
            Object::Missing => {
                return Ok(Err("is missing in the repository, which is a partial clone".into()));
            }
        };
        let Ok(text) = String::from_utf8(bytes) else {
            return Ok(Err("is binary, or text that is not UTF-8".into()));
        };
        let parts = markdown::decode(&text);
        if let Err(why) = judge_parts(parts.summary.as_deref(), parts.content) {
            return Ok(Err(why));
        }
        Ok(Ok(Fit {
            blob: blob.to_owned(),
            sha256: Sha256::of(parts.content.as_bytes()).to_string(),
            summary: parts.summary.unwrap_or_default(),
            size_bytes: parts.content.len(),
        }))
    }
}

/// The changes that make `after` out of `before`, each possible when those before it are made: deletions, then moves
/// into what is free, then the rest. A move in a circle, or one below its own path, is a deletion and a creation.
fn ordered(
    before: &BTreeMap<String, Fit>,
    after: &BTreeMap<String, Option<Fit>>,
    moves: Vec<(String, String)>,
) -> Vec<Change<String>> {
    let content = |fit: &Fit| (fit.blob.clone(), fit.size_bytes);
    let gone = |path: &String| after.get(path).is_some_and(Option::is_none);
    // Only what leaves its place for one that was free is a move.
    let mut pending: Vec<(String, String)> =
        moves.into_iter().filter(|(from, to)| gone(from) && !before.contains_key(to)).collect();
    let sources: BTreeSet<&String> = pending.iter().map(|(from, _)| from).collect();
    let deleted: Vec<&String> = after
        .keys()
        .filter(|path| gone(path) && !sources.contains(path) && before.contains_key(*path))
        .collect();
    let mut standing: Standing = before.keys().map(String::as_str).collect();
    let mut changes = Vec::new();
    for path in deleted {
        standing.remove(path);
        changes.push(Change::delete(path, &before[path].sha256));
    }
    let mut moved = BTreeSet::new();
    let mut waiting = pending.len() + 1;
    while !pending.is_empty() && pending.len() < waiting {
        waiting = pending.len();
        let mut still = Vec::new();
        for (from, to) in std::mem::take(&mut pending) {
            let free = MemoryPath::parse(&to).is_ok_and(|path| standing.overlapping(&path).is_none());
            match (free, before.get(&from), after.get(&to).and_then(Option::as_ref)) {
                (true, Some(old), Some(new)) => {
                    let new_content = (old.sha256 != new.sha256).then(|| content(new));
                    let summary = (old.summary != new.summary).then_some(new.summary.as_str());
                    changes.push(Change::update(&from, &old.sha256, summary, new_content).moved(&to));
                    standing.remove(&from);
                    standing.insert(&to);
                    moved.insert(to);
                }
                _ => still.push((from, to)),
            }
        }
        pending = still;
    }
    for (from, _) in pending {
        if let Some(old) = before.get(&from) {
            changes.push(Change::delete(&from, &old.sha256));
        }
    }
    let rest = || {
        after
            .iter()
            .filter_map(|(path, fit)| Some((path, fit.as_ref()?)))
            .filter(|(path, _)| !moved.contains(*path))
    };
    for (path, new) in rest() {
        let Some(old) = before.get(path) else { continue };
        let new_content = (old.sha256 != new.sha256).then(|| content(new));
        let summary = (old.summary != new.summary).then_some(new.summary.as_str());
        if new_content.is_some() || summary.is_some() {
            changes.push(Change::update(path, &old.sha256, summary, new_content));
        }
    }
    for (path, new) in rest().filter(|(path, _)| !before.contains_key(*path)) {
        changes.push(Change::create(path, Some(&new.summary), content(new)));
    }
    changes
}

/// What a commit says of itself.
#[derive(Debug)]
struct About {
    message: String,
    author: String,
    date: String,
}

impl About {
    fn read(objects: &mut Objects, commit: &str) -> anyhow::Result<Self> {
        let Object::Whole(bytes) = objects.get(commit, "commit", COMMIT_BYTES)? else {
            return Err(fail(
                Class::Refused,
                format!("the commit {commit} cannot be read, or its message has over 1 MiB"),
            ));
        };
        Ok(Self::parse(&String::from_utf8_lossy(&bytes)))
    }

    fn parse(text: &str) -> Self {
        let (head, message) = text.split_once("\n\n").unwrap_or((text, ""));
        let author = head.lines().find_map(|line| line.strip_prefix("author ")).unwrap_or_default();
        let (name, when) = author.split_at(author.rfind('>').map_or(author.len(), |end| end + 1));
        // What an export added about itself says nothing about this store.
        let own = |line: &str| {
            ["Stele-Store: ", "Stele-Version: ", "Stele-Sequence: "].iter().any(|own| line.starts_with(own))
        };
        let lines: Vec<&str> = message.trim_end().lines().filter(|line| !own(line)).collect();
        let message = lines.join("\n").replace('\0', "");
        Self { message: message.trim().to_owned(), author: name.trim().to_owned(), date: date(when.trim()) }
    }

    fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or("(no message)")
    }

    /// The reason of its changeset: the message, cut where it is too long, and where it comes from.
    fn reason(&self, commit: &str, part: Option<(usize, usize)>) -> String {
        let part = part.map(|(part, parts)| format!(" part {part} of {parts}")).unwrap_or_default();
        let line = |text: &str| text.chars().filter(|c| !c.is_control()).take(500).collect::<String>();
        let trailers = format!(
            "{AUTHOR}: {}\n{DATE}: {}\n{COMMIT}: {commit}{part}",
            line(&self.author),
            line(&self.date)
        );
        let room = REASON_CHARS - trailers.chars().count() - 3;
        let message: String = match self.message.char_indices().nth(room) {
            Some((end, _)) => format!("{}…", &self.message[..end]),
            None => self.message.clone(),
        };
        if message.is_empty() { trailers } else { format!("{message}\n\n{trailers}") }
    }
}

/// `1700000000 +0100` as RFC 3339.
fn date(when: &str) -> String {
    let read = || {
        let (seconds, zone) = when.split_once(' ')?;
        let at = jiff::Timestamp::from_second(seconds.parse().ok()?).ok()?;
        let (hours, minutes) = (zone.get(..3)?.parse::<i32>().ok()?, zone.get(3..)?.parse::<i32>().ok()?);
        let sign = if zone.starts_with('-') { -1 } else { 1 };
        let offset = jiff::tz::Offset::from_seconds(hours * 3_600 + sign * minutes * 60).ok()?;
        Some(at.display_with_offset(offset).to_string())
    };
    read().unwrap_or_else(|| when.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fit(text: &str) -> Fit {
        Fit {
            blob: text.into(),
            sha256: Sha256::of(text.as_bytes()).to_string(),
            summary: String::new(),
            size_bytes: text.len(),
        }
    }

    fn tree(files: &[(&str, &str)]) -> BTreeMap<String, Fit> {
        files.iter().map(|(path, text)| ((*path).into(), fit(text))).collect()
    }

    /// What a store would hold when it made the changes one by one; each must be possible.
    fn made(before: &BTreeMap<String, Fit>, changes: &[Change<String>]) -> BTreeMap<String, String> {
        let mut now: BTreeMap<String, String> =
            before.iter().map(|(path, fit)| (path.clone(), fit.blob.clone())).collect();
        for change in changes {
            let text = |key: &str| change.body[key].as_str().map(str::to_owned);
            let path = text("path").expect("a path");
            let old = now.remove(&path);
            assert_eq!(old.is_none(), change.body["op"] == "create", "{change:?}");
            if change.body["op"] == "delete" {
                continue;
            }
            let to = text("new_path").unwrap_or(path);
            let standing: Standing = now.keys().map(String::as_str).collect();
            assert_eq!(standing.overlapping(&MemoryPath::parse(&to).expect("a path")), None, "{change:?}");
            let content = change.content.as_ref().map(|(blob, _)| blob.clone()).or(old);
            now.insert(to, content.expect("a content"));
        }
        now
    }

    fn check(before: &[(&str, &str)], after: &[(&str, &str)], moves: &[(&str, &str)], ops: &[&str]) {
        let (before, goal) = (tree(before), tree(after));
        let mut changed: BTreeMap<String, Option<Fit>> = BTreeMap::new();
        for path in before.keys().chain(goal.keys()) {
            if before.get(path) != goal.get(path) {
                changed.insert(path.clone(), goal.get(path).cloned());
            }
        }
        let moves = moves.iter().map(|(from, to)| ((*from).to_owned(), (*to).to_owned())).collect();
        let changes = ordered(&before, &changed, moves);
        let goal: BTreeMap<String, String> = goal.into_iter().map(|(path, fit)| (path, fit.blob)).collect();
        assert_eq!(made(&before, &changes), goal);
        let names: Vec<_> = changes.iter().map(|change| change.body["op"].as_str().expect("an op")).collect();
        assert_eq!(names, ops);
    }

    #[test]
    fn changes_come_in_an_order_in_which_each_is_possible() {
        check(&[("/a", "1")], &[("/b", "1")], &[("/a", "/b")], &["update"]);
        check(
            &[("/a", "1"), ("/b", "2")],
            &[("/b", "1"), ("/c", "2")],
            &[("/b", "/c"), ("/a", "/b")],
            &["delete", "update", "create"],
        );
        check(&[("/a", "1"), ("/b", "2")], &[("/a", "2"), ("/b", "1")], &[], &["update", "update"]);
        check(&[("/a", "1")], &[("/a/b", "1")], &[("/a", "/a/b")], &["delete", "create"]);
        check(
            &[("/d/x", "1"), ("/d/y", "2")],
            &[("/d", "1")],
            &[("/d/x", "/d")],
            &["delete", "delete", "create"],
        );
        check(
            &[("/d", "1"), ("/e", "2")],
            &[("/d/x", "2"), ("/f", "1")],
            &[("/e", "/d/x"), ("/d", "/f")],
            &["update", "update"],
        );
    }

    proptest! {
        /// Trees over few names, so that files and directories of one name, circles and chains are common.
        #[test]
        fn any_tree_is_reached_from_any_other(
            before in prop::collection::btree_map(path(), 0..4_u8, 0..6),
            after in prop::collection::btree_map(path(), 0..4_u8, 0..6),
        ) {
            let (before, goal) = (possible(&before), possible(&after));
            let changed = |path: &&String| before.get(*path) != goal.get(*path);
            let touched: BTreeSet<String> = before.keys().chain(goal.keys()).filter(changed).cloned().collect();
            // As git pairs them: what is gone with what is new and has the same bytes.
            let mut new: Vec<&String> = touched.iter().filter(|path| !before.contains_key(*path)).collect();
            let mut moves = Vec::new();
            for from in touched.iter().filter(|path| !goal.contains_key(*path)) {
                if let Some(at) = new.iter().position(|to| goal[*to] == before[from]) {
                    moves.push((from.clone(), new.remove(at).clone()));
                }
            }
            let after = touched.into_iter().map(|path| (path.clone(), goal.get(&path).cloned())).collect();
            let changes = ordered(&before, &after, moves);
            let goal: BTreeMap<String, String> = goal.into_iter().map(|(path, fit)| (path, fit.blob)).collect();
            prop_assert_eq!(made(&before, &changes), goal);
        }
    }

    fn path() -> impl Strategy<Value = String> {
        prop::collection::vec("[ab]", 1..4).prop_map(|segments| format!("/{}", segments.join("/")))
    }

    /// The files of a tree that can be beside those before them.
    fn possible(tree: &BTreeMap<String, u8>) -> BTreeMap<String, Fit> {
        let (mut standing, mut files) = (Standing::default(), BTreeMap::new());
        for (path, text) in tree {
            if standing.overlapping(&MemoryPath::parse(path).expect("a path")).is_none() {
                standing.insert(path);
                files.insert(path.clone(), fit(&text.to_string()));
            }
        }
        files
    }

    #[test]
    fn differences_are_read_with_their_renames() {
        let text = b"c1\0:000000 100644 0 aa A\0a\0c2\0:100644 100644 aa aa R100\0a\0b\xff\0:100644 000000 aa 0 D\0c\0:100644 120000 aa bb T\0d\0";
        let diffs = parse_differences(text).expect("read");
        let to =
            |path: &[u8], mode: &str, blob: &str| Some((path.to_vec(), mode.to_owned(), blob.to_owned()));
        assert_eq!(diffs["c1"], [Touched { from: None, to: to(b"a", "100644", "aa") }]);
        assert_eq!(
            diffs["c2"],
            [
                Touched { from: Some(b"a".to_vec()), to: to(b"b\xff", "100644", "aa") },
                Touched { from: Some(b"c".to_vec()), to: None },
                Touched { from: Some(b"d".to_vec()), to: to(b"d", "120000", "bb") },
            ]
        );
        assert!(parse_differences(b":100644 100644 a b M\0a\0").is_err());
    }

    #[test]
    fn a_reason_holds_message_author_date_and_commit_and_is_never_too_long() {
        let text = "tree t\nauthor Ada L <ada@example.com> 1700000000 -0330\ncommitter x <y> 1 +0000\n\nSubject\n\nBody\n\n\
                    Stele-Store: memstore_x\n";
        let about = About::parse(text);
        assert_eq!(
            about.reason("c0ffee", None),
            "Subject\n\nBody\n\nGit-Author: Ada L <ada@example.com>\nGit-Date: 2023-11-14T18:43:20-03:30\nGit-Commit: c0ffee"
        );
        let reason = About { message: "ü".repeat(9_000), ..about }.reason("c0ffee", Some((2, 3)));
        assert!(reason.chars().count() <= REASON_CHARS && reason.ends_with("Git-Commit: c0ffee part 2 of 3"));
        assert_eq!(
            About::parse("tree t\nauthor broken").reason("c", None),
            "Git-Author: broken\nGit-Date: \nGit-Commit: c"
        );
    }

    #[test]
    fn the_trailer_of_a_reason_tells_what_was_taken() {
        let whole = Done::parse("c0ffee").expect("read");
        assert!(whole.is_whole() && whole.parts_done() == 0);
        let half = Done::parse("c0ffee part 2 of 3").expect("read");
        assert!(!half.is_whole() && half.parts_done() == 2);
        assert!(Done::parse("c0ffee part 3 of 3").is_some_and(|done| done.is_whole()));
        assert_eq!(Done::parse("c0ffee and more"), None);
    }
}
