//! A text in an editor: a private file that outlives every failure.

use std::fs::Permissions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};

use crate::config::process_env;
use crate::failure::{Class, fail};
use crate::output::complain;

/// Longest name of a file on the usual file systems, in bytes; some room is left for editors' backups.
const NAME_BYTES: usize = 200;

/// The exit code of a program that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// A text under work, in a file of a directory that only its owner may enter. Unless [`Draft::finish`] is called the
/// file stays, and its name is said.
pub(crate) struct Draft {
    dir: Option<TempDir>,
    file: PathBuf,
    editor: Arc<Mutex<Editor>>,
}

/// What an editor is about: Ctrl-C is meant for one that runs.
#[derive(Debug, Default)]
enum Editor {
    #[default]
    NotYet,
    Runs,
    Ended(Instant),
}

impl Editor {
    fn takes_interrupts(&self) -> bool {
        match self {
            Self::NotYet => false,
            Self::Runs => true,
            // The interrupt that ended it may be seen here later than its end.
            Self::Ended(at) => at.elapsed() < Duration::from_millis(200),
        }
    }
}

impl Draft {
    /// A file with `text`, named after the memory so that editors know its kind.
    pub(crate) fn new(path: &str, text: &str) -> anyhow::Result<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let name = if name.len() > NAME_BYTES { "memory.txt" } else { name };
        let dir = tempfile::Builder::new()
            .prefix("stele-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .context("cannot make a file for the editor")?;
        let draft = Self { file: dir.path().join(name), dir: Some(dir), editor: Arc::default() };
        draft.write(text)?;
        outlive_interrupts(draft.file.clone(), draft.editor.clone())
            .context("cannot make a text safe from Ctrl-C")?;
        Ok(draft)
    }

    /// Replaces the text.
    pub(crate) fn write(&self, text: &str) -> anyhow::Result<()> {
        let write = || {
            let mut file = std::fs::File::create(&self.file)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().with_context(|| format!("cannot write {}", self.file.display()))
    }

    /// Puts a copy of the text beside it.
    pub(crate) fn set_aside(&self, text: &str) -> anyhow::Result<()> {
        let mut name = std::ffi::OsString::from("mine-");
        name.push(self.file.file_name().unwrap_or_default());
        let aside = self.file.with_file_name(name);
        std::fs::write(&aside, text).with_context(|| format!("cannot write {}", aside.display()))
    }

    /// Lets the person edit the text and reads it back.
    pub(crate) fn edit(&self) -> anyhow::Result<String> {
        let editor = editor()?;
        // As git does it: the setting is a piece of shell, so that `code --wait` works.
        self.now(Editor::Runs);
        let status = Command::new("sh")
            .arg("-c")
            .arg(format!("{editor} \"$@\""))
            .arg(&editor)
            .arg(&self.file)
            .status();
        self.now(Editor::Ended(Instant::now()));
        let status = status.with_context(|| format!("cannot run the editor {editor}"))?;
        match status.code() {
            Some(0) => self.read(),
            Some(126 | 127) => Err(fail(
                Class::Other,
                format!("there is no editor {editor}: set VISUAL or EDITOR to one that there is"),
            )),
            _ => Err(fail(Class::Other, format!("the editor {editor} failed ({status}): nothing was saved"))),
        }
    }

    fn now(&self, editor: Editor) {
        *self.editor.lock().unwrap_or_else(PoisonError::into_inner) = editor;
    }

    fn read(&self) -> anyhow::Result<String> {
        let bytes = std::fs::read(&self.file).map_err(|error| match error.kind() {
            ErrorKind::NotFound => fail(Class::Other, "the editor left no file behind: nothing was saved"),
            _ => anyhow::Error::new(error).context("cannot read what the editor wrote"),
        })?;
        String::from_utf8(bytes).map_err(|_| {
            fail(Class::Refused, "what the editor wrote is not UTF-8 text, and a memory must be")
        })
    }

    /// Removes the file: its text is saved, or is nobody's work.
    pub(crate) fn finish(mut self) {
        self.dir = None;
    }

    /// Whether there is something in the file that is not `text`.
    pub(crate) fn differs_from(&self, text: &str) -> bool {
        std::fs::read(&self.file).is_ok_and(|bytes| bytes != text.as_bytes())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(dir) = self.dir.take() {
            let _ = dir.keep();
            complain(&format!("your text is kept in {}", self.file.display()));
        }
    }
}

/// From here on Ctrl-C is the editor's while one runs, as shells do it; otherwise it ends this program, and says where
/// the text is. The thread lives as long as the process: a program has one draft.
fn outlive_interrupts(file: PathBuf, editor: Arc<Mutex<Editor>>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut interrupts = {
        let _here = runtime.enter();
        signal(SignalKind::interrupt())?
    };
    let watch = move || {
        runtime.block_on(async {
            while interrupts.recv().await.is_some() {
                if editor.lock().is_ok_and(|editor| editor.takes_interrupts()) {
                    continue;
                }
                if file.exists() {
                    complain(&format!("your text is kept in {}", file.display()));
                }
                std::process::exit(INTERRUPTED);
            }
        });
    };
    std::thread::Builder::new().name("interrupts".into()).spawn(watch).map(drop)
}

fn editor() -> anyhow::Result<String> {
    let named = |name| process_env(name).filter(|editor| !editor.trim().is_empty());
    if let Some(editor) = named("VISUAL").or_else(|| named("EDITOR")) {
        return Ok(editor);
    }
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return Ok("vi".into());
    }
    Err(fail(Class::Usage, "no editor is named and there is no terminal for one: set VISUAL or EDITOR"))
}
