//! `stele export --git`: the history of a store as the history of a repository.
//!
//! **A commit is a changeset**: versions that follow each other without a gap, by one author, for one reason, each a
//! microsecond after the one before, which is how a store times what it changes at once. It is by who made the changes,
//! of when they were made, and says why. Its trailers tell the store, the newest version in it (by whose id the next
//! export goes on) and the sequence that the store had at the time of the export.
//!
//! Where each memory lies is told by replaying the whole list of versions, whose texts are fetched for new ones only.
//! The newest version of a memory can be neither redacted nor forgotten while the memory lives, so that the last tree is
//! always that of the store, whatever is missing between.

use std::collections::{BTreeSet, HashMap};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{ChildStdin, Stdio};

use anyhow::Context;
use serde_json::json;
use stele_archive::markdown;
use stele_client::{Client, ClientError, Recorded, Store, Text};
use stele_core::path::MemoryPath;

use super::folder_out::no_file;
use super::git::{Git, Object};
use super::plan::Standing;
use super::{fetch, judge, shown};
use crate::cli::Export;
use crate::commands::walk::Unfit;
use crate::commands::{Session, resolve};
use crate::failure::{Class, fail};
use crate::ids::{session_token, version_uuid};
use crate::output::{Report, cell, complain, count, progress};

/// The branch of our own repository that new commits grow on.
const GROWING: &str = "refs/heads/export";
const STORE: &str = "Stele-Store";
const VERSION: &str = "Stele-Version";
const SEQUENCE: &str = "Stele-Sequence";
/// Most bytes of a commit's own text that is read.
const COMMIT_BYTES: u64 = 1024 * 1024;

/// Where an export ended.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    commit: String,
    version: String,
    sequence: u64,
}

/// The versions that became one commit.
struct Changeset<'v> {
    versions: &'v [Recorded],
}

pub(super) fn export(session: &Session, args: &Export) -> anyhow::Result<()> {
    if args.place.path.as_deref().is_some_and(|path| path != "/") {
        return Err(fail(Class::Usage, "a history is exported whole: name the store alone"));
    }
    let store = resolve::store(&session.client, &args.place.store)?;
    let git = repository(args)?;
    let branch = match &git {
        Some(git) => git.branch()?,
        None => "refs/heads/main".into(),
    };
    let tip = git.as_ref().map(|git| git.commit("HEAD")).transpose()?.flatten();
    let mark = match (&git, &tip) {
        (Some(git), Some(tip)) => Some(mark(git, tip, &store, &args.dir)?),
        _ => None,
    };
    if let (Some(git), Some(mark)) = (&git, &mark) {
        catch_up(git, &mark.commit, args.dry_run)?;
    }
    let (sequence, _) = session.client.store_stands(&store.id)?;
    let mut history = session.client.history(&fetch::uuid(&store)?).collect::<Result<Vec<_>, _>>()?;
    history.reverse();
    let from = mark.as_ref().filter(|_| !args.rewrite);
    if let Some(mark) = from {
        warn_of_redactions(&session.client, &store, mark)?;
    }
    let known =
        from.map_or(0, |mark| history.partition_point(|version| version.memory_version_id <= mark.version));
    let changesets = changesets(&history[known..]);
    let unfit = unfit(&history[known..]);
    judge(&unfit, args.partial, "nothing was written")?;
    let mut report = Report::default();
    let new = match (&git, changesets.is_empty()) {
        (Some(git), false) if !args.dry_run => {
            let authors = Authors::of(&session.client);
            let growing = Growing { session, store: &store, git, authors, sequence, from };
            let new = growing.grow(&history[..known], &changesets)?;
            git.advance(&branch, tip.as_deref(), &new)?;
            catch_up(git, &new, false)?;
            if args.rewrite && tip.is_some() {
                forget(git)?;
            }
            Some(new)
        }
        _ => None,
    };
    if session.json {
        let head = new.or(tip);
        report.json(&json!({
            "repository": args.dir, "branch": branch, "commit": head, "new_commits": changesets.len(),
            "new_versions": history.len() - known, "left_out": unfit.len(), "dry_run": args.dry_run,
        }));
        return report.end();
    }
    if args.dry_run {
        for changeset in &changesets {
            report.line(&format!(
                "would commit {} {}",
                changeset.last().created_at,
                cell(&changeset.subject())
            ));
        }
    }
    let dry = if args.dry_run { "dry run: " } else { "" };
    let commits = count(changesets.len(), "new commit", "new commits");
    let versions = count(history.len() - known, "version", "versions");
    report.line(&format!("{dry}{}: {commits} of {versions}, {} left out", shown(&args.dir), unfit.len()));
    report.end()
}

/// The repository; none where a dry run would make one.
fn repository(args: &Export) -> anyhow::Result<Option<Git>> {
    if let Some(git) = Git::open(&args.dir)? {
        return Ok(Some(git));
    }
    let empty = match std::fs::read_dir(&args.dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !empty {
        let message = format!("{} is neither empty nor a git repository", shown(&args.dir));
        return Err(fail(Class::Refused, message));
    }
    if args.dry_run {
        return Ok(None);
    }
    Git::init(&args.dir).map(Some)
}

/// Where the last export of this store ended, as the newest commit tells.
fn mark(git: &Git, tip: &str, store: &Store, dir: &Path) -> anyhow::Result<Mark> {
    let Object::Whole(commit) = git.objects()?.get(tip, "commit", COMMIT_BYTES)? else {
        return Err(fail(Class::Refused, format!("the commit {tip} cannot be read")));
    };
    let text = String::from_utf8_lossy(&commit);
    let (store_of, version, sequence) =
        (trailer(&text, STORE), trailer(&text, VERSION), trailer(&text, SEQUENCE));
    let sequence = sequence.and_then(|sequence| sequence.parse().ok());
    let (Some(store_of), Some(version), Some(sequence)) = (store_of, version, sequence) else {
        let message = format!(
            "the newest commit in {} was not made by stele export: keep work of your own on another branch and check \
             out the one that it writes, or name another directory",
            shown(dir)
        );
        return Err(fail(Class::Conflict, message));
    };
    if store_of != store.id {
        let message = format!("{} holds the history of another store, {}", shown(dir), cell(store_of));
        return Err(fail(Class::Conflict, message));
    }
    Ok(Mark { commit: tip.to_owned(), version: version.to_owned(), sequence })
}

/// The last trailer of that name in a commit's text: what stands there before may be anybody's.
pub(super) fn trailer<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let lines = text.trim_end().rsplit('\n').take_while(|line| !line.is_empty());
    let mut values = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    values.next()
}

/// Says where texts that the repository holds were redacted since.
fn warn_of_redactions(client: &Client, store: &Store, mark: &Mark) -> anyhow::Result<()> {
    let (mut after, mut held) = (mark.sequence, 0);
    loop {
        let page = match client.changes(&store.id, after, None, 0) {
            Err(ClientError::Refused { status: 410, .. }) => {
                complain(
                    "whether the repository holds texts that were redacted since cannot be told any more; --rewrite \
                     makes it anew",
                );
                return Ok(());
            }
            page => page?,
        };
        held += page
            .data
            .iter()
            .filter(|change| change.operation == "redacted")
            .filter_map(|change| version_uuid(change.memory_version_id.as_deref()?))
            .filter(|version| *version <= mark.version)
            .count();
        let Some(last) = page.data.last() else { break };
        after = last.sequence;
    }
    if held > 0 {
        let texts = count(held, "text that was redacted since is", "texts that were redacted since are");
        complain(&format!("{texts} still in the repository; --rewrite makes it anew without them"));
    }
    Ok(())
}

/// The versions cut into commits.
fn changesets(versions: &[Recorded]) -> Vec<Changeset<'_>> {
    let together = |a: &Recorded, b: &Recorded| {
        let micros = |version: &Recorded| {
            version.created_at.parse::<jiff::Timestamp>().ok().map(|at| at.as_microsecond())
        };
        let follows = micros(a).zip(micros(b)).is_some_and(|(a, b)| b - a == 1);
        follows && author(a) == author(b) && a.rationale == b.rationale
    };
    versions.chunk_by(together).map(|versions| Changeset { versions }).collect()
}

fn author(version: &Recorded) -> (&str, &str) {
    let id = version.author_session_id.as_deref().or(version.author_principal.as_deref());
    (&version.author_kind, id.unwrap_or_default())
}

/// Versions whose path is no name of a file.
fn unfit(versions: &[Recorded]) -> Vec<Unfit> {
    let paths: BTreeSet<&str> =
        versions.iter().filter(|one| one.is_shown()).map(|one| one.path.as_str()).collect();
    let judged = paths.into_iter().filter_map(|path| {
        let why = no_file(path.strip_prefix('/')?)?;
        Some(Unfit { file: path.into(), why: why.into() })
    });
    judged.collect()
}

/// What the lines of a history are to an export.
trait Shown {
    fn is_deletion(&self) -> bool;
    /// Whether it has a path and a text.
    fn is_shown(&self) -> bool;
}

impl Shown for Recorded {
    fn is_deletion(&self) -> bool {
        self.operation == "delete"
    }

    fn is_shown(&self) -> bool {
        !self.is_deletion() && self.redacted_at.is_none() && !self.path.is_empty()
    }
}

impl Changeset<'_> {
    fn last(&self) -> &Recorded {
        self.versions.last().expect("a changeset has a version")
    }

    /// What the commit says: the reason, else what was done.
    fn message(&self) -> String {
        if let Some(reason) =
            self.last().rationale.as_deref().map(str::trim).filter(|reason| !reason.is_empty())
        {
            return reason.replace('\0', "");
        }
        if self.versions.iter().all(|version| version.redacted_at.is_some()) {
            return "A change that was redacted since".into();
        }
        match self.versions {
            [one] => {
                let (what, path) = (&one.operation, one.path.trim_start_matches('/'));
                let mut word = what.chars();
                let word = word.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(word);
                format!("{} {path}", word.collect::<String>())
            }
            several => format!("Change {} memories", several.len()),
        }
    }

    fn subject(&self) -> String {
        self.message().lines().next().unwrap_or_default().to_owned()
    }
}

/// Where the memories lie while a history is replayed.
#[derive(Default)]
struct Layout {
    /// Path by memory.
    paths: HashMap<String, String>,
    /// Memory by path.
    memories: HashMap<String, String>,
    standing: Standing,
}

/// What a version does to the tree.
#[derive(Debug, PartialEq, Eq)]
struct Effect {
    gone: Vec<String>,
    /// Where its text comes to lie.
    at: Option<String>,
}

impl Layout {
    fn replay(&mut self, version: &Recorded) -> Effect {
        let old = self.paths.get(&version.memory_id).cloned();
        if version.is_deletion() {
            self.take_away(old.as_deref());
            return Effect { gone: old.into_iter().collect(), at: None };
        }
        let Some(path) = MemoryPath::parse(&version.path).ok().filter(|_| version.is_shown()) else {
            return Effect { gone: Vec::new(), at: None };
        };
        self.take_away(old.as_deref());
        let mut gone: Vec<String> = old.into_iter().collect();
        let fit = version.path.strip_prefix('/').is_some_and(|name| no_file(name).is_none());
        if fit {
            // Memories whose moving away was redacted or forgotten may seem to be in the way still.
            while let Some(other) = self.standing.overlapping(&path).map(str::to_owned) {
                self.take_away(Some(&other));
                gone.push(other);
            }
            self.paths.insert(version.memory_id.clone(), version.path.clone());
            self.memories.insert(version.path.clone(), version.memory_id.clone());
            self.standing.insert(&version.path);
            gone.retain(|gone| *gone != version.path);
        }
        Effect { gone, at: fit.then(|| version.path.clone()) }
    }

    fn take_away(&mut self, path: Option<&str>) {
        let Some(path) = path else { return };
        if let Some(memory) = self.memories.remove(path) {
            self.paths.remove(&memory);
        }
        self.standing.remove(path);
    }
}

/// Who wrote: names for ids.
struct Authors {
    keys: HashMap<String, String>,
    agents: std::cell::RefCell<HashMap<String, Option<String>>>,
}

impl Authors {
    /// With the names of keys, where the caller may see them.
    fn of(client: &Client) -> Self {
        let listed = client.get("/stele/v1/api_keys").unwrap_or_default();
        let keys = listed["api_keys"].as_array().into_iter().flatten();
        let named =
            keys.filter_map(|key| Some((key["api_key_id"].as_str()?.into(), key["name"].as_str()?.into())));
        Self { keys: named.collect(), agents: std::cell::RefCell::default() }
    }

    /// `Name <id@kind>`, as git writes it.
    fn line(&self, client: &Client, version: &Recorded) -> String {
        let (kind, id) = author(version);
        let name = match kind {
            "session" => self
                .agent(client, id)
                .map_or_else(|| format!("session {id}"), |agent| format!("{agent} (session)")),
            _ => self.keys.get(id).cloned().unwrap_or_else(|| format!("{kind} {id}")),
        };
        let plain =
            |text: &str| text.chars().filter(|c| !c.is_control() && !"<>".contains(*c)).collect::<String>();
        format!("{} <{}@{}.stele.invalid>", plain(&name).trim(), plain(id), plain(kind))
    }

    /// The agent of a session, asked for once.
    fn agent(&self, client: &Client, session: &str) -> Option<String> {
        let mut agents = self.agents.borrow_mut();
        let ask = || {
            let found = client.session(&session_token(session)?).ok()?;
            found.agent["name"].as_str().map(str::to_owned)
        };
        agents.entry(session.to_owned()).or_insert_with(ask).clone()
    }
}

/// New commits under way.
struct Growing<'a> {
    session: &'a Session,
    store: &'a Store,
    git: &'a Git,
    authors: Authors,
    sequence: u64,
    from: Option<&'a Mark>,
}

impl Growing<'_> {
    /// Writes the commits, and gives the last one's id.
    fn grow(&self, known: &[Recorded], changesets: &[Changeset<'_>]) -> anyhow::Result<String> {
        let mut layout = Layout::default();
        for version in known {
            layout.replay(version);
        }
        let mut importer = self
            .git
            .command(["fast-import", "--quiet", "--date-format=raw"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run git")?;
        let stdin = importer.stdin.take().context("git has no input")?;
        let written = self.write(BufWriter::new(stdin), &mut layout, changesets);
        let done = importer.wait_with_output().context("cannot wait for git")?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            let first = said.lines().find(|line| line.starts_with("fatal")).unwrap_or("it ended early");
            return Err(fail(Class::Other, format!("git cannot take the commits: {first}")));
        }
        written?;
        let new = self.git.output(["rev-parse", "--verify", GROWING], "find the new commit")?;
        Ok(String::from_utf8_lossy(&new).trim().to_owned())
    }

    fn write(
        &self,
        mut out: BufWriter<ChildStdin>,
        layout: &mut Layout,
        changesets: &[Changeset<'_>],
    ) -> anyhow::Result<()> {
        const ENDED: &str = "git ended early";
        let all = || changesets.iter().flat_map(|changeset| changeset.versions);
        let ids = all().filter(|version| version.is_shown()).map(|version| version.memory_version_id.clone());
        let store = fetch::uuid(self.store)?;
        let batches = self.session.client.version_texts(&store, ids.collect());
        let mut texts = batches
            .flat_map(|batch| match batch {
                Ok(texts) => texts.into_iter().map(Ok).collect::<Vec<_>>(),
                Err(error) => vec![Err(error)],
            })
            .peekable();
        let bar = progress(changesets.len() as u64);
        for (number, changeset) in changesets.iter().enumerate() {
            self.head(&mut out, changeset, number == 0).context(ENDED)?;
            if number == 0 {
                // Before anything else: a directory may come where one of them was.
                for stale in self.stale(layout)? {
                    writeln!(out, "D {}", quoted(&stale)).context(ENDED)?;
                }
            }
            for version in changeset.versions {
                let text = take_text(&mut texts, &version.memory_version_id)?;
                let effect = layout.replay(version);
                for gone in &effect.gone {
                    writeln!(out, "D {}", quoted(gone)).context(ENDED)?;
                }
                let content = text.as_ref().and_then(|text| text.content.as_deref());
                if let (Some(at), Some(content)) = (&effect.at, content) {
                    let summary = text.as_ref().and_then(|text| text.summary.as_deref()).unwrap_or_default();
                    let file = markdown::encode(summary, content);
                    write!(out, "M 100644 inline {}\ndata {}\n{file}\n", quoted(at), file.len())
                        .context(ENDED)?;
                }
            }
            writeln!(out).context(ENDED)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        out.flush().context(ENDED)
    }

    fn head(&self, out: &mut impl Write, changeset: &Changeset<'_>, first: bool) -> std::io::Result<()> {
        let last = changeset.last();
        let author = self.authors.line(&self.session.client, last);
        let seconds = last.created_at.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second);
        let message = format!(
            "{}\n\n{STORE}: {}\n{VERSION}: {}\n{SEQUENCE}: {}\n",
            changeset.message(),
            self.store.id,
            last.memory_version_id,
            self.sequence
        );
        writeln!(
            out,
            "commit {GROWING}\nauthor {author} {seconds} +0000\ncommitter {author} {seconds} +0000"
        )?;
        writeln!(out, "data {}\n{message}", message.len())?;
        match self.from.filter(|_| first) {
            Some(mark) => writeln!(out, "from {}", mark.commit),
            None => Ok(()),
        }
    }

    /// Files of the commit that is gone on from which no version explains any more: that of their memory was redacted or
    /// forgotten since, and a later one says where it is.
    fn stale(&self, layout: &Layout) -> anyhow::Result<Vec<String>> {
        let Some(mark) = self.from else { return Ok(Vec::new()) };
        let live: BTreeSet<&str> = layout.paths.values().map(String::as_str).collect();
        let files =
            self.git.output(["ls-tree", "-r", "-z", "--name-only", &mark.commit], "list the last commit")?;
        let files = files.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let names = files.map(|name| format!("/{}", String::from_utf8_lossy(name)));
        Ok(names.filter(|path| !live.contains(path.as_str())).collect())
    }
}

/// The text of a version, if it is the next of those that come. One that was redacted or forgotten meanwhile has none.
fn take_text(
    texts: &mut std::iter::Peekable<impl Iterator<Item = Result<Text, ClientError>>>,
    version: &str,
) -> anyhow::Result<Option<Text>> {
    let wanted = |text: &Result<Text, ClientError>| match text {
        Ok(text) => text.memory_version_id == version,
        Err(_) => true,
    };
    Ok(texts.next_if(wanted).transpose()?)
}

/// A path as fast-import takes it, without its first slash.
fn quoted(path: &str) -> String {
    let name = path.strip_prefix('/').unwrap_or(path);
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Brings a working tree that follows the exports to `commit`. Work of one's own in it is never touched: then nothing is
/// exported.
fn catch_up(git: &Git, commit: &str, look_only: bool) -> anyhow::Result<()> {
    let Some(worktree) = git.worktree.clone() else { return Ok(()) };
    let run = |args: &[&str]| git.on_worktree(&worktree, args).output().context("cannot run git");
    let dirty = || {
        let message = format!(
            "{} has changes of your own: commit them to another branch, or undo them",
            shown(&worktree)
        );
        fail(Class::Conflict, message)
    };
    let index = if git.dir.join("index").exists() {
        run(&["update-index", "-q", "--refresh"])?;
        if !run(&["diff-files", "--quiet"])?.status.success() {
            return Err(dirty());
        }
        let tree = run(&["write-tree"])?;
        let tree = String::from_utf8_lossy(&tree.stdout).trim().to_owned();
        // What the index holds must be some commit of the history: then nothing is lost with it.
        let trees = git.output(
            ["rev-list", "--first-parent", "--no-commit-header", "--format=%T", commit],
            "list commits",
        )?;
        let trees = String::from_utf8_lossy(&trees);
        if !trees.lines().any(|known| known == tree) && !is_former(git, &tree)? {
            return Err(dirty());
        }
        Some(tree)
    } else {
        None
    };
    if look_only {
        return Ok(());
    }
    let mut args = vec!["read-tree", "-m", "-u"];
    args.extend(index.as_deref());
    args.push(commit);
    let done = run(&args)?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(dirty().context(said.trim().to_owned()));
    }
    Ok(())
}

/// Whether a tree is that of the commit that the branch was on before a rewrite.
fn is_former(git: &Git, tree: &str) -> anyhow::Result<bool> {
    let Some(former) = git.commit("HEAD@{1}")? else { return Ok(false) };
    let of = git.output(["rev-parse", &format!("{former}^{{tree}}")], "look at the former commit")?;
    Ok(String::from_utf8_lossy(&of).trim() == tree)
}

/// Removes what no branch leads to any more.
fn forget(git: &Git) -> anyhow::Result<()> {
    let what = "remove the former history";
    git.housekeeping(&["reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all"], what)?;
    git.housekeeping(&["repack", "-a", "-d", "-q"], what)?;
    git.housekeeping(&["prune", "--expire=now"], what)?;
    if git.refs()? > 1 {
        complain("other branches, tags or remotes of the repository may still hold the former history");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(n: u8, memory: &str, path: &str, micros: i64) -> Recorded {
        let at = jiff::Timestamp::from_microsecond(micros).expect("a time");
        Recorded {
            memory_version_id: n.to_string(),
            memory_id: memory.into(),
            operation: "update".into(),
            author_kind: "api".into(),
            author_principal: Some("k".into()),
            author_session_id: None,
            rationale: None,
            path: path.into(),
            created_at: at.to_string(),
            redacted_at: None,
        }
    }

    #[test]
    fn a_commit_is_what_one_author_changed_at_once_for_one_reason() {
        let mut versions =
            vec![version(1, "a", "/a", 10), version(2, "b", "/b", 11), version(3, "c", "/c", 13)];
        versions.push(Recorded { rationale: Some("why".into()), ..version(4, "d", "/d", 14) });
        versions.push(Recorded { author_principal: Some("other".into()), ..version(5, "e", "/e", 15) });
        let sizes: Vec<_> = changesets(&versions).iter().map(|one| one.versions.len()).collect();
        assert_eq!(sizes, [2, 1, 1, 1]);
        let messages: Vec<_> = changesets(&versions).iter().map(Changeset::message).collect();
        assert_eq!(messages, ["Change 2 memories", "Update c", "why", "Update e"]);
    }

    #[test]
    fn a_memory_whose_move_was_redacted_makes_room() {
        let mut layout = Layout::default();
        let effect = |layout: &mut Layout, version| {
            let Effect { gone, at } = layout.replay(&version);
            (gone, at.unwrap_or_default())
        };
        effect(&mut layout, version(1, "a", "/x", 1));
        let hidden =
            Recorded { redacted_at: Some("t".into()), path: String::new(), ..version(2, "a", "", 2) };
        assert_eq!(effect(&mut layout, hidden), (vec![], String::new()));
        assert_eq!(effect(&mut layout, version(3, "b", "/x/y", 3)), (vec!["/x".into()], "/x/y".into()));
        assert_eq!(effect(&mut layout, version(4, "a", "/z", 4)), (vec![], "/z".into()));
        let moved = effect(&mut layout, version(5, "a", "/w", 5));
        assert_eq!(moved, (vec!["/z".into()], "/w".into()));
        let gone = Recorded { operation: "delete".into(), ..version(6, "b", "/x/y", 6) };
        assert_eq!(effect(&mut layout, gone), (vec!["/x/y".into()], String::new()));
    }

    #[test]
    fn the_trailers_are_those_of_the_last_paragraph() {
        let text = "tree 1\n\nwhy\n\nStele-Store: forged\n\nStele-Store: real\nStele-Sequence: 7\n";
        assert_eq!(trailer(text, STORE), Some("real"));
        assert_eq!(trailer(text, SEQUENCE), Some("7"));
        assert_eq!(trailer("Stele-Store: x\n\nno trailer", STORE), None);
    }

    #[test]
    fn a_path_is_quoted_for_git() {
        assert_eq!(quoted("/a \"b\"\\c"), "\"a \\\"b\\\"\\\\c\"");
    }
}
