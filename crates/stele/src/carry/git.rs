//! The `git` program, kept from running anybody's code.
//!
//! A repository's own configuration can name programs: hooks, filters, diff and credential helpers, a file system
//! monitor, ways to fetch. So no command that could run them ever reads it. Objects are read and written through a
//! repository of our own that is empty and temporary, whose object directory is the other one's
//! (`GIT_OBJECT_DIRECTORY`); the configuration of the system and of the user is left out as well. In the foreign
//! repository itself only names are looked up and set (`rev-parse`, `symbolic-ref`, `update-ref`), without hooks.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;

use crate::config::process_env;
use crate::failure::{Class, fail};

/// What every command is told, whatever a configuration says.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.sshCommand=false",
    "core.attributesFile=/dev/null",
    "core.pager=cat",
    "core.autocrlf=false",
    "core.commitGraph=false",
    "core.precomposeUnicode=false",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    // Nothing of the repository is run, so it does not matter whose it is.
    "safe.directory=*",
];
/// The tree without entries, in either format of objects: attributes are taken from it, so that none count.
const EMPTY_TREES: [(&str, &str); 2] = [
    ("sha1", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"),
    ("sha256", "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"),
];

/// A repository that somebody has, and one of our own over its objects.
pub(super) struct Git {
    /// Its git directory.
    pub(super) dir: PathBuf,
    /// Its working tree, where it has one.
    pub(super) worktree: Option<PathBuf>,
    objects: PathBuf,
    shallow: Option<PathBuf>,
    empty_tree: &'static str,
    own: tempfile::TempDir,
}

/// A command without the configuration of system and user.
fn bare() -> Command {
    let mut command = Command::new("git");
    command.env_clear();
    for name in ["PATH", "TMPDIR"] {
        if let Some(value) = process_env(name) {
            command.env(name, value);
        }
    }
    command
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_COMMITTER_NAME", "stele")
        .env("GIT_COMMITTER_EMAIL", "stele@stele.invalid")
        .stdin(Stdio::null());
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
}

/// What a command prints.
fn output(command: &mut Command, what: &str) -> anyhow::Result<Vec<u8>> {
    let done = command.output().map_err(missing)?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(fail(Class::Refused, format!("git cannot {what}: {}", said.trim())))
}

fn line(command: &mut Command, what: &str) -> anyhow::Result<String> {
    Ok(String::from_utf8_lossy(&output(command, what)?).trim_end_matches('\n').to_owned())
}

fn missing(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => fail(
            Class::Other,
            "this needs the program git, which is not on the PATH: install it (apt-get install git, brew install git)",
        ),
        _ => anyhow::Error::new(error).context("cannot run git"),
    }
}

impl Git {
    /// The repository at `dir`; `None` where there is none. Repositories around it do not count.
    pub(super) fn open(dir: &Path) -> anyhow::Result<Option<Self>> {
        let Ok(dir) = dir.canonicalize() else { return Ok(None) };
        let bare_one = dir.join("HEAD").exists() && dir.join("objects").exists();
        if !(bare_one || dir.join(".git").exists()) {
            return Ok(None);
        }
        let look = |args: &[&str], what: &str| {
            let mut command = bare();
            if let Some(above) = dir.parent() {
                command.env("GIT_CEILING_DIRECTORIES", above);
            }
            line(command.arg("-C").arg(&dir).arg("rev-parse").args(args), what)
        };
        let read = format!("read the repository {}", dir.display());
        let git_dir = PathBuf::from(look(&["--absolute-git-dir"], &read)?);
        let objects = PathBuf::from(look(&["--path-format=absolute", "--git-path", "objects"], &read)?);
        let shallow = PathBuf::from(look(&["--path-format=absolute", "--git-path", "shallow"], &read)?);
        let format = look(&["--show-object-format"], &read)?;
        let bare_one = look(&["--is-bare-repository"], &read)? == "true";
        Self::over(
            git_dir,
            (!bare_one).then_some(dir),
            objects,
            Some(shallow).filter(|file| file.exists()),
            &format,
        )
        .map(Some)
    }

    /// A new repository with a working tree at `dir`, which is empty or not there.
    pub(super) fn init(dir: &Path) -> anyhow::Result<Self> {
        output(
            bare().args(["init", "--quiet", "--template=", "--initial-branch=main"]).arg(dir),
            "make a repository",
        )?;
        Self::open(dir)?.with_context(|| format!("git made no repository in {}", dir.display()))
    }

    fn over(
        dir: PathBuf,
        worktree: Option<PathBuf>,
        objects: PathBuf,
        shallow: Option<PathBuf>,
        format: &str,
    ) -> anyhow::Result<Self> {
        let Some((_, empty_tree)) = EMPTY_TREES.into_iter().find(|(name, _)| *name == format) else {
            return Err(fail(
                Class::Refused,
                format!("the repository keeps objects as {format}, which is not known"),
            ));
        };
        let own = tempfile::tempdir().context("cannot make a temporary directory")?;
        let mut init = bare();
        init.args(["init", "--quiet", "--bare", "--template=", "--initial-branch=main"]);
        output(init.arg(format!("--object-format={format}")).arg(own.path()), "make a temporary repository")?;
        Ok(Self { dir, worktree, objects, shallow, empty_tree, own })
    }

    /// A command on the objects, by our own configuration.
    pub(super) fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = bare();
        command
            .env("GIT_DIR", self.own.path())
            .env("GIT_OBJECT_DIRECTORY", &self.objects)
            .env("GIT_ATTR_SOURCE", self.empty_tree);
        if let Some(shallow) = &self.shallow {
            command.env("GIT_SHALLOW_FILE", shallow);
        }
        command.args(args);
        command
    }

    /// What such a command prints.
    pub(super) fn output<S: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = S>,
        what: &str,
    ) -> anyhow::Result<Vec<u8>> {
        output(&mut self.command(args), what)
    }

    /// A command on the names of the foreign repository.
    fn names(&self, args: &[&str]) -> Command {
        let mut command = bare();
        command.env("GIT_DIR", &self.dir).args(args);
        command
    }

    /// The commit that a name stands for; `None` where it stands for none.
    pub(super) fn commit(&self, name: &str) -> anyhow::Result<Option<String>> {
        let wanted = format!("{name}^{{commit}}");
        let done = self.names(&["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted]).output();
        let done = done.map_err(missing)?;
        Ok(done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned()))
    }

    /// The branch that is checked out, as `refs/heads/...`.
    pub(super) fn branch(&self) -> anyhow::Result<String> {
        line(&mut self.names(&["symbolic-ref", "HEAD"]), "tell the branch that is checked out")
    }

    /// How many names there are.
    pub(super) fn refs(&self) -> anyhow::Result<usize> {
        let names = line(&mut self.names(&["for-each-ref", "--format=%(refname)"]), "list its branches")?;
        Ok(names.lines().count())
    }

    /// Moves a branch from one commit to another, if it is still where it was.
    pub(super) fn advance(&self, branch: &str, from: Option<&str>, to: &str) -> anyhow::Result<()> {
        // A name that must not be there yet is one whose old value is empty.
        let old = from.unwrap_or("");
        let what = format!("move {branch}, which something else holds or moved");
        output(&mut self.names(&["update-ref", "-m", "stele export", branch, to, old]), &what).map(drop)
    }

    /// Runs another command in the foreign repository: for those only that run nothing of its configuration.
    pub(super) fn housekeeping(&self, args: &[&str], what: &str) -> anyhow::Result<()> {
        output(&mut self.names(args), what).map(drop)
    }

    /// A command on the working tree and its index, by our own configuration.
    pub(super) fn on_worktree(&self, worktree: &Path, args: &[&str]) -> Command {
        let mut command = self.command(args);
        command
            .env("GIT_WORK_TREE", worktree)
            .env("GIT_INDEX_FILE", self.dir.join("index"))
            .current_dir(worktree);
        command
    }

    /// The objects, for who asks for many.
    pub(super) fn objects(&self) -> anyhow::Result<Objects> {
        let mut child = self
            .command(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(missing)?;
        let (ask, answer) = (child.stdin.take(), child.stdout.take());
        let (Some(ask), Some(answer)) = (ask, answer) else { anyhow::bail!("git has no pipes") };
        Ok(Objects { child, ask: Some(ask), answer: BufReader::new(answer) })
    }
}

/// A `git cat-file --batch`.
pub(super) struct Objects {
    child: Child,
    ask: Option<ChildStdin>,
    answer: BufReader<ChildStdout>,
}

/// An object as it was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// Its bytes.
    Whole(Vec<u8>),
    /// It has more bytes than were wanted.
    Large(u64),
    /// It is not there, or of another kind.
    Missing,
}

impl Objects {
    /// The object of this id, if it is of this kind and has at most so many bytes.
    pub(super) fn get(&mut self, id: &str, kind: &str, most: u64) -> anyhow::Result<Object> {
        let ask = self.ask.as_mut().context("git was told to end")?;
        ask.write_all(format!("{id}\n").as_bytes()).and_then(|()| ask.flush()).context("git ended early")?;
        let mut head = String::new();
        self.answer.read_line(&mut head).context("git ended early")?;
        let mut words = head.split_ascii_whitespace().skip(1);
        let (Some(found), Some(size)) =
            (words.next(), words.next().and_then(|size| size.parse::<u64>().ok()))
        else {
            return Ok(Object::Missing);
        };
        let mut body = (&mut self.answer).take(size);
        let object = if found != kind || size > most {
            std::io::copy(&mut body, &mut std::io::sink()).context("git ended early")?;
            if found == kind { Object::Large(size) } else { Object::Missing }
        } else {
            let mut bytes = Vec::new();
            body.read_to_end(&mut bytes).context("git ended early")?;
            Object::Whole(bytes)
        };
        let mut end = [0];
        self.answer.read_exact(&mut end).context("git ended early")?;
        Ok(object)
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // Without anybody to ask it ends by itself.
        self.ask = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_around_a_directory_is_not_its_own() {
        let dir = tempfile::tempdir().expect("a directory");
        Git::init(dir.path()).expect("a repository");
        std::fs::create_dir(dir.path().join("below")).expect("a directory");
        assert!(Git::open(&dir.path().join("below")).expect("looked").is_none());
        assert!(Git::open(dir.path()).expect("looked").is_some());
        assert!(Git::open(&dir.path().join("nowhere")).expect("looked").is_none());
    }

    #[test]
    fn objects_are_told_by_kind_and_size() {
        let dir = tempfile::tempdir().expect("a directory");
        let git = Git::init(dir.path()).expect("a repository");
        std::fs::write(dir.path().join("x"), "text").expect("written");
        let file = dir.path().join("x").display().to_string();
        let id = git.output(["hash-object", "-w", &file], "keep an object").expect("kept");
        let id = String::from_utf8_lossy(&id).trim().to_owned();
        let mut objects = git.objects().expect("git");
        assert_eq!(objects.get(&id, "blob", 4).expect("told"), Object::Whole(b"text".to_vec()));
        assert_eq!(objects.get(&id, "blob", 3).expect("told"), Object::Large(4));
        assert_eq!(objects.get(&id, "commit", 4).expect("told"), Object::Missing);
        assert_eq!(objects.get(&"0".repeat(id.len()), "blob", 4).expect("told"), Object::Missing);
        assert_eq!(objects.get(&id, "blob", 9).expect("told"), Object::Whole(b"text".to_vec()));
    }
}
