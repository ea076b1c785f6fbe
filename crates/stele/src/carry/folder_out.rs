//! `stele export STORE DIR`: the memories of one moment become files.
//!
//! All of them are written beside their places first, below [`PARTIAL`], and looked at; then each is renamed into its
//! place. So an export that is refused changes no file, and one that was broken off is gone on with by the same
//! command: what is in its place already has the right bytes.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde_json::{Value, json};
use stele_archive::markdown;
use stele_client::{Node, Store};
use stele_core::path::MemoryPath;

use super::{fetch, judge, shown};
use crate::cli::{Conflict, Export};
use crate::commands::history::{Side, print_diff};
use crate::commands::walk::{Listing, PARTIAL, Unfit, text_up_to};
use crate::commands::{Session, resolve};
use crate::failure::{Class, fail};
use crate::output::{Report, colours, complain, count, progress};

/// Longest name of a file. POSIX leaves it to the file system; all common ones have this one.
const NAME_BYTES: usize = 255;
/// Most bytes of a file that is shown in a diff.
const SHOWN_BYTES: u64 = 1024 * 1024;
/// Most files of a directory that is looked at for what is missing in the store.
const MOST_FILES: usize = 100_000;

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Create,
    Update,
    Unchanged,
    Skip,
    Delete,
    Conflict,
}

impl Step {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Create => ("create", "created"),
            Self::Update => ("update", "updated"),
            Self::Unchanged => ("unchanged", "unchanged"),
            Self::Skip => ("skip", "skipped"),
            Self::Delete => ("delete", "deleted"),
            Self::Conflict => ("conflict", "in conflict"),
        }
    }
}

/// A file of an export, under way.
struct Out {
    /// From the directory on.
    name: String,
    step: Step,
    /// Where its bytes wait; none of what is deleted.
    staged: Option<PathBuf>,
}

pub(super) fn export(session: &Session, args: &Export) -> anyhow::Result<()> {
    let store = resolve::store(&session.client, &args.place.store)?;
    let prefix = resolve::prefix(&args.place);
    let nodes = session.client.tree(&fetch::uuid(&store)?)?;
    let (nodes, unfit) = files_of(nodes, &prefix);
    judge(&unfit, args.partial, "nothing was written")?;
    prepare(&args.dir, args.dry_run)?;
    // A dry run leaves the directory alone, and may not even be allowed to write there.
    let (away, stage) = match args.dry_run {
        true => {
            let away = tempfile::tempdir().context("cannot make a temporary directory")?;
            let stage = away.path().to_owned();
            (Some(away), stage)
        }
        false => (None, args.dir.join(PARTIAL)),
    };
    let _claim = claim(&stage)?;
    let done = write_all(session, &store, args, &prefix, (&nodes, &unfit), &stage);
    if away.is_none() {
        let gone = fs::remove_dir_all(&stage).with_context(|| format!("cannot remove {}", stage.display()));
        return done.and(gone);
    }
    done
}

/// The directory, which may be new; one that a link leads to is where the person wants it.
fn prepare(dir: &Path, dry_run: bool) -> anyhow::Result<()> {
    match fs::metadata(dir) {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(fail(Class::Refused, format!("{} is not a directory", dir.display()))),
        Err(error) if error.kind() == ErrorKind::NotFound && dry_run => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))
        }
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", dir.display())),
    }
}

/// Takes the place for what is not done yet, and empties it of what an export left that was broken off.
fn claim(stage: &Path) -> anyhow::Result<fs::File> {
    let context = || format!("cannot prepare {}", stage.display());
    match fs::symlink_metadata(stage) {
        Ok(about) if !about.is_dir() => {
            return Err(fail(Class::Refused, format!("{} is in the way: remove it", stage.display())));
        }
        _ => fs::create_dir_all(stage).with_context(context)?,
    }
    let claim = fs::File::open(stage).with_context(context)?;
    if let Err(fs::TryLockError::WouldBlock) = claim.try_lock() {
        let message = format!("another export is writing here, by way of {}", stage.display());
        return Err(fail(Class::Conflict, message));
    }
    for entry in fs::read_dir(stage).with_context(context)? {
        fs::remove_file(entry.with_context(context)?.path()).with_context(context)?;
    }
    Ok(claim)
}

/// The memories below `prefix` by the name that each has as a file, and those that cannot be one.
pub(super) fn files_of(nodes: Vec<Node>, prefix: &str) -> (Vec<(String, Node)>, Vec<Unfit>) {
    let (mut files, mut unfit) = (Vec::new(), Vec::new());
    for node in nodes {
        let Some(name) = node.path.strip_prefix(prefix).map(str::to_owned) else { continue };
        match no_file(&name) {
            Some(why) => unfit.push(Unfit { file: PathBuf::from(&node.path), why: why.into() }),
            None => files.push((name, node)),
        }
    }
    (files, unfit)
}

/// Why a path, from the directory on, is no name of a file there.
pub(super) fn no_file(name: &str) -> Option<&'static str> {
    if MemoryPath::parse(&format!("/{name}")).is_err() {
        return Some("is no path that a file can have");
    }
    if name.split('/').next() == Some(PARTIAL) {
        return Some("lies where an export keeps what is not done yet");
    }
    let own = |segment: &str| segment.eq_ignore_ascii_case(".git") || segment.eq_ignore_ascii_case("git~1");
    if name.split('/').any(own) {
        return Some("lies where git would take it for its own: in .git");
    }
    name.split('/')
        .any(|segment| segment.len() > NAME_BYTES)
        .then_some("has a name that is too long for a file")
}

fn write_all(
    session: &Session,
    store: &Store,
    args: &Export,
    prefix: &str,
    (nodes, unfit): (&[(String, Node)], &[Unfit]),
    stage: &Path,
) -> anyhow::Result<()> {
    let gone = if args.delete_missing { missing(args, nodes)? } else { BTreeSet::new() };
    let mut files = staged(session, store, args, (nodes, &gone), stage)?;
    files.extend(gone.into_iter().map(|name| Out { name, step: Step::Delete, staged: None }));
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let mut report = Report::default();
    if args.dry_run && !session.json {
        for out in files.iter().filter(|out| !matches!(out.step, Step::Unchanged | Step::Skip)) {
            report.line(&format!("would {} {}", out.step.words().0, shown(&args.dir.join(&out.name))));
            diff(args, out)?;
        }
    }
    let conflicts: Vec<&Out> = files.iter().filter(|out| out.step == Step::Conflict).collect();
    for out in &conflicts {
        complain(&format!(
            "{} is there with another text, or is no plain file",
            shown(&args.dir.join(&out.name))
        ));
    }
    if !conflicts.is_empty() {
        let number = count(conflicts.len(), "file conflicts", "files conflict");
        let message = format!(
            "nothing was written: {number} with what is there; --on-conflict skip leaves that, --on-conflict overwrite \
             replaces it"
        );
        return Err(fail(Class::Conflict, message));
    }
    if !args.dry_run {
        place(args, &files)?;
    }
    if session.json {
        let rows: Vec<Value> =
            files.iter().map(|out| json!({"file": out.name, "step": out.step.words().0})).collect();
        let left: Vec<Value> = unfit.iter().map(|one| json!({"path": one.file, "why": one.why})).collect();
        report.json(&json!({"data": rows, "dry_run": args.dry_run, "left_out": left, "path_prefix": prefix}));
        return report.end();
    }
    let number =
        |step: Step| format!("{} {}", files.iter().filter(|out| out.step == step).count(), step.words().1);
    let steps =
        [Step::Create, Step::Update, Step::Delete, Step::Unchanged, Step::Skip].map(number).join(", ");
    let dry = if args.dry_run { "dry run: " } else { "" };
    report.line(&format!("{dry}{}: {steps}, {} left out", shown(&args.dir), unfit.len()));
    report.end()
}

/// Fetches every text as it was when the tree was read, and looks at what is in its place.
fn staged(
    session: &Session,
    store: &Store,
    args: &Export,
    (nodes, gone): (&[(String, Node)], &BTreeSet<String>),
    stage: &Path,
) -> anyhow::Result<Vec<Out>> {
    let bar = progress(nodes.len() as u64);
    let ids = nodes.iter().map(|(_, node)| node.memory_version_id.clone()).collect();
    let mut rest = nodes.iter();
    let mut files = Vec::with_capacity(nodes.len());
    for batch in session.client.version_texts(&fetch::uuid(store)?, ids) {
        for text in batch? {
            // In the order asked for; the version of a memory that was deleted meanwhile may be gone.
            let (name, node) = rest
                .by_ref()
                .find(|(_, node)| node.memory_version_id == text.memory_version_id)
                .context("the server gave a text that was not asked for")?;
            let Some(content) = text.content else {
                bar.finish_and_clear();
                let message = format!("{} was redacted while it was read: run the command again", node.path);
                return Err(fail(Class::Conflict, message));
            };
            let file = markdown::encode(text.summary.as_deref().unwrap_or_default(), &content).into_owned();
            let step = step(&args.dir, name, file.as_bytes(), (args.on_conflict, gone))?;
            let staged = stage.join(files.len().to_string());
            fs::write(&staged, file).with_context(|| format!("cannot write {}", staged.display()))?;
            if let Some(time) = time(&node.updated_at) {
                let opened = fs::OpenOptions::new().write(true).open(&staged);
                opened.and_then(|file| file.set_modified(time)).context("cannot set the time of a file")?;
            }
            files.push(Out { name: name.clone(), step, staged: Some(staged) });
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    if files.len() < nodes.len() {
        let message = "memories were deleted for good while they were read: run the command again";
        return Err(fail(Class::Conflict, message));
    }
    Ok(files)
}

/// A time of the wire as files have it.
fn time(text: &str) -> Option<SystemTime> {
    let micros = text.parse::<jiff::Timestamp>().ok()?.as_microsecond();
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(u64::try_from(micros).ok()?))
}

/// What becomes of the file `name` below `dir`, where the files `gone` are deleted first.
fn step(
    dir: &Path,
    name: &str,
    bytes: &[u8],
    (on_conflict, gone): (Conflict, &BTreeSet<String>),
) -> anyhow::Result<Step> {
    let differs = match on_conflict {
        Conflict::Refuse => Step::Conflict,
        Conflict::Skip => Step::Skip,
        Conflict::Overwrite => Step::Update,
    };
    // What stands in the way as something else than a file or directory is never replaced.
    let in_the_way = if on_conflict == Conflict::Skip { Step::Skip } else { Step::Conflict };
    let look = |file: &Path| match fs::symlink_metadata(file) {
        Ok(about) => Ok(Some(about)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot look at {}", file.display())),
    };
    for (slash, _) in name.match_indices('/') {
        let above = &name[..slash];
        match look(&dir.join(above))? {
            None => return Ok(Step::Create),
            Some(about) if about.is_dir() => {}
            Some(about) if about.is_file() && gone.contains(above) => return Ok(Step::Create),
            Some(_) => return Ok(in_the_way),
        }
    }
    let file = dir.join(name);
    match look(&file)? {
        None => Ok(Step::Create),
        Some(about) if about.is_file() => {
            let same = about.len() == bytes.len() as u64
                && fs::read(&file).with_context(|| format!("cannot read {}", file.display()))? == bytes;
            Ok(if same { Step::Unchanged } else { differs })
        }
        Some(about) if about.is_dir() && !gone.is_empty() && vacated(&file, name, gone)? => Ok(Step::Create),
        Some(_) => Ok(in_the_way),
    }
}

/// Whether nothing is left in a directory once the files `gone` are deleted.
fn vacated(dir: &Path, name: &str, gone: &BTreeSet<String>) -> anyhow::Result<bool> {
    let mut waiting = vec![(dir.to_owned(), name.to_owned())];
    while let Some((dir, name)) = waiting.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
            let entry = entry.with_context(|| format!("cannot read {}", dir.display()))?;
            let below = format!("{name}/{}", entry.file_name().to_string_lossy());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => waiting.push((entry.path(), below)),
                Ok(kind) if kind.is_file() && gone.contains(&below) => {}
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// The plain files of the directory that no memory is for.
fn missing(args: &Export, nodes: &[(String, Node)]) -> anyhow::Result<BTreeSet<String>> {
    if !args.dir.is_dir() {
        return Ok(BTreeSet::new());
    }
    let names: BTreeSet<&str> = nodes.iter().map(|(name, _)| name.as_str()).collect();
    let files = Listing::of(&args.dir, MOST_FILES)?.files.into_iter().map(|file| file.name);
    Ok(files.filter(|name| !names.contains(name.as_str())).collect())
}

fn diff(args: &Export, out: &Out) -> anyhow::Result<()> {
    let text = |file: &Path| text_up_to(file, SHOWN_BYTES).unwrap_or_default();
    let side = |name: &str, text: String| Side { name: name.into(), path: out.name.clone(), text };
    let old = match out.step {
        Step::Create => side("nothing", String::new()),
        _ => side("file", text(&args.dir.join(&out.name))),
    };
    let new = match &out.staged {
        Some(staged) => side("memory", text(staged)),
        None => side("nothing", String::new()),
    };
    print_diff(&old, &new, colours())
}

/// Puts what was staged into its place. Deletions first: a file may be where a directory comes.
fn place(args: &Export, files: &[Out]) -> anyhow::Result<()> {
    for out in files.iter().filter(|out| out.step == Step::Delete) {
        let file = args.dir.join(&out.name);
        fs::remove_file(&file).with_context(|| format!("cannot delete {}", file.display()))?;
        // Directories that are empty now go with it.
        let mut above = file.parent();
        while let Some(dir) = above.filter(|dir| *dir != args.dir && fs::remove_dir(dir).is_ok()) {
            above = dir.parent();
        }
    }
    let bar = progress(files.len() as u64);
    for out in files {
        bar.inc(1);
        let Some(staged) = out.staged.as_ref().filter(|_| matches!(out.step, Step::Create | Step::Update))
        else {
            continue;
        };
        let file = args.dir.join(&out.name);
        let dir = file.parent().unwrap_or(&args.dir);
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        if fs::symlink_metadata(&file).is_ok_and(|about| about.is_dir()) {
            remove_empty(&file)?;
        }
        fs::rename(staged, &file).with_context(|| format!("cannot put {} into its place", file.display()))?;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Removes a directory in which there is nothing but directories.
fn remove_empty(dir: &Path) -> anyhow::Result<()> {
    let mut found = vec![dir.to_owned()];
    let mut at = 0;
    while let Some(dir) = found.get(at).cloned() {
        let entries = fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))?;
        found.extend(entries.flatten().map(|entry| entry.path()));
        at += 1;
    }
    for dir in found.iter().rev() {
        fs::remove_dir(dir).with_context(|| format!("cannot make room at {}", dir.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_would_take_for_its_own_is_no_file() {
        for bad in
            [".git/config", "a/.GIT/hooks/x", "git~1", ".stele-partial/1", &"x".repeat(256), "a/../b", "/x"]
        {
            assert!(no_file(bad).is_some(), "{bad}");
        }
        for good in [".gitignore", "a/.github/x", "a/.stele-partial/b", &"x".repeat(255), "a b/c%d"] {
            assert_eq!(no_file(good), None, "{good}");
        }
    }

    #[test]
    fn a_link_is_neither_followed_nor_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let outside = tempfile::tempdir().expect("a directory");
        fs::write(outside.path().join("a"), "theirs").expect("written");
        std::os::unix::fs::symlink(outside.path(), dir.path().join("l")).expect("a link");
        std::os::unix::fs::symlink(outside.path().join("a"), dir.path().join("a")).expect("a link");
        let gone = BTreeSet::from(["l".to_owned(), "a".to_owned()]);
        let of = |name: &str, how| step(dir.path(), name, b"ours", (how, &gone)).expect("a step");
        for name in ["l/a", "l/new", "l", "a", "a/b"] {
            assert_eq!(of(name, Conflict::Overwrite), Step::Conflict, "{name}");
            assert_eq!(of(name, Conflict::Skip), Step::Skip, "{name}");
        }
        assert_eq!(of("new/x", Conflict::Refuse), Step::Create);
    }
}
