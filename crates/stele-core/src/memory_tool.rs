//! The memory tool of Anthropic's Messages API with a store behind it: `/memories/x` is the memory `/x`.
//! spec/anthropic.md 16 and 17.4.
//!
//! The model reads the texts, so they are the SDK's to the letter. What the model did wrong is an answer that says so;
//! only what the caller may not do, or what the server cannot, is an error.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::access::Caller;
use crate::changeset::{Changeset, MAX_CHANGES};
use crate::command::{Command, Expected, MemoryRef, OnArchived};
use crate::edit::{NotReplaced, insert_after, numbered, replace_once};
use crate::id::StoreId;
use crate::list::{Depth, Detail, MemoryEntry};
use crate::model::Memory;
use crate::path::{MemoryPath, PathPrefix};
use crate::refusal::{FieldError, Refusal};
use crate::service::Stele;
use crate::storage::{At, Error, MemoryRead};
use crate::text::{Content, Summary};

/// The directory that the tool sees.
const ROOT: &str = "/memories";
/// Most lines of a file that is shown.
const MAX_LINES: usize = 999_999;
/// How often an edit that somebody else came before is tried again. Each time one of those who edit at once gets
/// through, so that of so many all do.
const TRIES: usize = 200;

/// What the model asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolCommand {
    /// Shows a file, or a directory two levels deep.
    View {
        /// Which.
        path: String,
        /// First and last line; -1 for the last of the file.
        view_range: Option<[i64; 2]>,
    },
    /// Makes a file.
    Create {
        /// Where.
        path: String,
        /// Its text.
        file_text: String,
    },
    /// Replaces a passage.
    StrReplace {
        /// In which file.
        path: String,
        /// The passage.
        old_str: String,
        /// By what.
        new_str: String,
    },
    /// Inserts lines.
    Insert {
        /// In which file.
        path: String,
        /// After which line.
        insert_line: i64,
        /// What.
        insert_text: String,
    },
    /// Removes a file, or a directory with all below it.
    Delete {
        /// Which.
        path: String,
    },
    /// Moves a file or directory.
    Rename {
        /// From where.
        old_path: String,
        /// To where.
        new_path: String,
    },
}

/// What the model is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The text.
    pub content: String,
    /// Whether it says what went wrong.
    pub is_error: bool,
}

/// Why there is no success to tell.
enum Trouble {
    /// The model is told.
    Told(String),
    /// The caller is told.
    Failed(Error),
}

impl From<Refusal> for Trouble {
    /// What the model can do something about, it is told.
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Forbidden(_) | Refusal::StoreNotFound(_) => Self::Failed(refusal.into()),
            Refusal::InChangeset { refusal, .. } => Self::from(*refusal),
            other => Self::Told(other.to_string()),
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused { refusal, .. } => refusal.into(),
            failed @ Error::Failed(_) => Self::Failed(failed),
        }
    }
}

type Told = Result<String, Trouble>;

fn told<T>(text: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Told(text.into()))
}

/// A path of the tool: the store's root, or a place below it.
struct Place<'a> {
    /// As the model wrote it.
    shown: &'a str,
    /// The path in the store; `None` for the root.
    path: Option<MemoryPath>,
}

impl<'a> Place<'a> {
    fn read(shown: &'a str) -> Result<Self, Trouble> {
        let below = shown.strip_prefix(ROOT).filter(|below| below.is_empty() || below.starts_with('/'));
        let Some(below) = below else { return told(format!("Path must start with {ROOT}, got: {shown}")) };
        let mut parts: Vec<&str> = Vec::new();
        for part in below.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    if parts.pop().is_none() {
                        return told(format!("Path {shown} would escape {ROOT} directory"));
                    }
                }
                name => parts.push(name),
            }
        }
        if parts.is_empty() {
            return Ok(Self { shown, path: None });
        }
        match MemoryPath::parse(&format!("/{}", parts.join("/"))) {
            Ok(path) => Ok(Self { shown, path: Some(path) }),
            Err(error) => told(format!("The path {shown} cannot be a memory: {error}")),
        }
    }

    fn directory(&self) -> PathPrefix {
        match &self.path {
            None => PathPrefix::root(),
            Some(path) => PathPrefix::parse(&path.as_directory()).unwrap_or_else(|_| PathPrefix::root()),
        }
    }
}

/// A store as the tool works on it.
struct Tool<'a> {
    stele: &'a Stele,
    caller: &'a Caller,
    store: StoreId,
    /// The store's sequence in the last answer.
    sequence: AtomicU64,
}

/// Carries out what the model asks for.
///
/// # Errors
/// The caller may not do it, there is no such store, or the storage failed.
pub async fn run(
    stele: &Stele,
    caller: &Caller,
    store: StoreId,
    command: &ToolCommand,
) -> Result<At<ToolAnswer>, Error> {
    let tool = Tool { stele, caller, store, sequence: AtomicU64::new(0) };
    let said = match command {
        ToolCommand::View { path, view_range } => tool.view(path, *view_range).await,
        ToolCommand::Create { path, file_text } => tool.create(path, file_text).await,
        ToolCommand::StrReplace { path, old_str, new_str } => tool.replace(path, old_str, new_str).await,
        ToolCommand::Insert { path, insert_line, insert_text } => {
            tool.insert(path, *insert_line, insert_text).await
        }
        ToolCommand::Delete { path } => tool.delete(path).await,
        ToolCommand::Rename { old_path, new_path } => tool.rename(old_path, new_path).await,
    };
    let (content, is_error) = match said {
        Ok(content) => (content, false),
        Err(Trouble::Told(content)) => (content, true),
        Err(Trouble::Failed(error)) => return Err(error),
    };
    let sequence = match tool.sequence.into_inner() {
        // Nothing was asked of the store yet, which has to be there all the same.
        0 => stele.store_get(caller, store).await?.counters.sequence,
        seen => seen,
    };
    Ok(At { sequence, value: ToolAnswer { content, is_error } })
}

impl Tool<'_> {
    /// Takes an answer of the store and remembers its sequence.
    fn seen<T>(&self, answer: At<T>) -> T {
        self.sequence.store(answer.sequence, Ordering::Relaxed);
        answer.value
    }

    /// The memory at the place with its text.
    async fn file(&self, place: &Place<'_>) -> Result<Option<(Memory, String)>, Trouble> {
        let Some(path) = &place.path else { return Ok(None) };
        let which = MemoryRef::Path(path.clone());
        let read = self.stele.memory_get(self.caller, self.store, which, Detail::Full, None).await;
        match read.map(|read| self.seen(read)) {
            Ok(MemoryRead::Read { memory, content, .. }) => {
                let text = String::from_utf8(content.unwrap_or_default().to_vec());
                Ok(Some((memory, text.map_err(|_| Trouble::Told("the memory is no text".into()))?)))
            }
            Ok(MemoryRead::Known(_)) => unreachable!("no ready body was asked for"),
            Err(Error::Refused { refusal: Refusal::PathNotFound, .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn below(&self, place: &Place<'_>) -> Result<Vec<Memory>, Trouble> {
        let below = self.stele.memory_browse(self.caller, self.store, place.directory(), Depth::All).await?;
        let entries = self.seen(below);
        let memory = |entry| match entry {
            MemoryEntry::Memory { memory, .. } => Some(memory),
            MemoryEntry::Directory { .. } => None,
        };
        Ok(entries.into_iter().filter_map(memory).collect())
    }

    async fn needed(&self, place: &Place<'_>) -> Result<(Memory, String), Trouble> {
        if let Some(found) = self.file(place).await? {
            return Ok(found);
        }
        let shown = place.shown;
        if place.path.is_none() || !self.below(place).await?.is_empty() {
            return told(format!("The path {shown} is not a file."));
        }
        told(format!("The path {shown} does not exist. Please provide a valid path."))
    }

    /// Carries out all of them, in as few changesets as they need.
    async fn change(&self, commands: Vec<Command>) -> Result<(), Trouble> {
        for part in commands.chunks(MAX_CHANGES) {
            let changeset = Changeset::new(None, part.to_vec())?;
            let changed = self.stele.change_all(self.caller, self.store, changeset).await?;
            self.sequence.store(changed.sequence, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads, edits and writes, again where somebody else came in between.
    async fn edit(&self, path: &str, edit: impl Fn(&str) -> Result<(String, String), Trouble>) -> Told {
        let place = Place::read(path)?;
        let mut tries = 0;
        loop {
            let (memory, text) = self.needed(&place).await?;
            let (new, said) = edit(&text)?;
            let command = Command::UpdateMemory {
                memory: memory.id.into(),
                path: None,
                summary: None,
                content: Some(self.content(new)?),
                expected: Expected::Content(memory.content_sha256),
            };
            tries += 1;
            match self.stele.change(self.caller, self.store, command, false).await {
                Ok(changed) => {
                    self.sequence.store(changed.sequence, Ordering::Relaxed);
                    return Ok(said);
                }
                Err(Error::Refused { refusal: Refusal::ContentChanged { .. }, .. }) if tries < TRIES => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn content(&self, text: String) -> Result<Content, Trouble> {
        Content::parse(text, self.stele.limits().content_bytes).map_err(|error| {
            Refusal::Invalid { field: "file_text".into(), error: FieldError::Text(error) }.into()
        })
    }

    async fn view(&self, path: &str, range: Option<[i64; 2]>) -> Told {
        let place = Place::read(path)?;
        let Some((_, text)) = self.file(&place).await? else { return self.tree(&place).await };
        let lines: Vec<&str> = text.split('\n').collect();
        if lines.len() > MAX_LINES {
            return told(format!("File {path} exceeds maximum line limit of 999,999 lines."));
        }
        let (first, last) = match range {
            None => (0, lines.len()),
            Some([first, last]) => {
                // The end counts as a slice of Python's does: from the back where it is negative.
                let last = if last == -1 { i64::MAX } else { last };
                let count = i64::try_from(lines.len()).unwrap_or(i64::MAX);
                let last = if last < 0 { count.saturating_add(last) } else { last };
                let index = |line: i64| usize::try_from(line).unwrap_or(0);
                (index(first - 1), index(last).min(lines.len()))
            }
        };
        let shown = lines.get(first..last.max(first)).unwrap_or_default();
        let numbered = numbered(shown.iter().copied(), first + 1);
        Ok(format!("Here's the content of {path} with line numbers:\n{numbered}"))
    }

    async fn tree(&self, place: &Place<'_>) -> Told {
        let shown = place.shown;
        let memories = self.below(place).await?;
        if memories.is_empty() && place.path.is_some() {
            return told(format!("The path {shown} does not exist. Please provide a valid path."));
        }
        let directory = place.directory();
        let mut total = 0;
        // By the parts of the path, so that what is below a directory follows it.
        let mut entries: std::collections::BTreeMap<Vec<&str>, (u64, bool)> = Default::default();
        for memory in &memories {
            let parts: Vec<&str> = memory.path.as_str()[directory.as_str().len()..].split('/').collect();
            total += memory.size_bytes;
            if parts.iter().take(2).any(|part| part.starts_with('.')) {
                continue;
            }
            for depth in 1..=parts.len().min(2) {
                let entry = entries.entry(parts[..depth].to_vec()).or_default();
                entry.0 += memory.size_bytes;
                entry.1 |= depth < parts.len();
            }
        }
        let mut lines = vec![format!("{}\t{shown}", size(total))];
        for (parts, (bytes, is_directory)) in entries {
            let slash = if is_directory { "/" } else { "" };
            lines.push(format!("{}\t{shown}/{}{slash}", size(bytes), parts.join("/")));
        }
        let listing = lines.join("\n");
        Ok(format!(
            "Here're the files and directories up to 2 levels deep in {shown}, excluding hidden items:\n{listing}"
        ))
    }

    async fn create(&self, path: &str, text: &str) -> Told {
        let place = Place::read(path)?;
        let Some(at) = place.path else { return told(format!("File {path} already exists")) };
        let content = self.content(text.to_owned())?;
        let command = Command::CreateMemory { path: at.clone(), summary: Summary::empty(), content };
        match self.stele.change(self.caller, self.store, command, false).await {
            Ok(changed) => {
                self.sequence.store(changed.sequence, Ordering::Relaxed);
                Ok(format!("File created successfully at: {path}"))
            }
            Err(Error::Refused { refusal: Refusal::PathOccupied { at: by, .. }, .. })
                if at.ancestors().any(|a| a == by.as_str()) =>
            {
                told(format!("File {path} cannot be created: {ROOT}{by} is a file, not a directory"))
            }
            Err(Error::Refused { refusal: Refusal::PathOccupied { .. }, .. }) => {
                told(format!("File {path} already exists"))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn replace(&self, path: &str, old: &str, new: &str) -> Told {
        let edit = |text: &str| match replace_once(text, old, new) {
            Ok(replaced) => {
                let lines: Vec<&str> = replaced.text.split('\n').collect();
                let first = replaced.line.saturating_sub(3);
                let around = lines[first..(replaced.line + 2).min(lines.len())].iter().copied();
                let said = format!(
                    "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{}",
                    numbered(around, first + 1)
                );
                Ok((replaced.text.clone(), said))
            }
            Err(NotReplaced::Absent) => told(format!(
                "No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
            )),
            Err(NotReplaced::Several(lines)) => {
                let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
                told(format!(
                    "No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {}. Please ensure \
                     it is unique",
                    lines.join(", ")
                ))
            }
        };
        self.edit(path, edit).await
    }

    async fn insert(&self, path: &str, line: i64, text: &str) -> Told {
        let edit = |old: &str| match insert_after(old, line, text) {
            Ok(new) => Ok((new, format!("The file {path} has been edited."))),
            Err(lines) => told(format!(
                "Invalid `insert_line` parameter: {line}. It should be within the range [0, {lines}]."
            )),
        };
        self.edit(path, edit).await
    }

    async fn delete(&self, path: &str) -> Told {
        let place = Place::read(path)?;
        if place.path.is_none() {
            return told(format!("Cannot delete the {ROOT} directory itself"));
        }
        let memories = self.at_or_below(&place).await?;
        if memories.is_empty() {
            return told(format!("The path {path} does not exist"));
        }
        let delete = |memory: &Memory| Command::DeleteMemory {
            memory: memory.id.into(),
            expected: Expected::Anything,
            on_archived: OnArchived::Allow,
        };
        self.change(memories.iter().map(delete).collect()).await?;
        Ok(format!("Successfully deleted {path}"))
    }

    async fn rename(&self, old_path: &str, new_path: &str) -> Told {
        let (old, new) = (Place::read(old_path)?, Place::read(new_path)?);
        let Some(from) = &old.path else { return told(format!("Cannot rename the {ROOT} directory itself")) };
        let taken = || told(format!("The destination {new_path} already exists"));
        let Some(to) = &new.path else { return taken() };
        if !self.at_or_below(&new).await?.is_empty() {
            return taken();
        }
        let memories = self.at_or_below(&old).await?;
        if memories.is_empty() {
            return told(format!("The path {old_path} does not exist"));
        }
        let mut moves = Vec::with_capacity(memories.len());
        for memory in &memories {
            let rest = &memory.path.as_str()[from.as_str().len()..];
            let path = MemoryPath::parse(&format!("{to}{rest}"));
            let path =
                path.map_err(|error| Trouble::Told(format!("The destination {new_path}{rest}: {error}")))?;
            moves.push(Command::UpdateMemory {
                memory: memory.id.into(),
                path: Some(path),
                summary: None,
                content: None,
                expected: Expected::Anything,
            });
        }
        match self.change(moves).await {
            Err(Trouble::Failed(error)) => Err(Trouble::Failed(error)),
            Err(Trouble::Told(why)) => told(format!("{old_path} was not renamed: {why}")),
            Ok(()) => Ok(format!("Successfully renamed {old_path} to {new_path}")),
        }
    }

    async fn at_or_below(&self, place: &Place<'_>) -> Result<Vec<Memory>, Trouble> {
        match self.file(place).await? {
            Some((memory, _)) => Ok(vec![memory]),
            None => self.below(place).await,
        }
    }
}

/// A number of bytes for people: `12B`, `1.5K`, `2M`.
fn size(bytes: u64) -> String {
    let mut unit = 1_u64;
    for letter in ["B", "K", "M"] {
        let next = unit * 1024;
        if bytes < next || letter == "M" {
            return match bytes % unit {
                0 => format!("{}{letter}", bytes / unit),
                // In tenths, rounded: exact for anything that a store can hold.
                _ => {
                    let tenths = (bytes * 10 + unit / 2) / unit;
                    format!("{}.{}{letter}", tenths / 10, tenths % 10)
                }
            };
        }
        unit = next;
    }
    unreachable!("the last unit takes everything")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(shown: &str) -> Result<Option<String>, String> {
        match Place::read(shown) {
            Ok(place) => Ok(place.path.map(|path| path.as_str().to_owned())),
            Err(Trouble::Told(text)) => Err(text),
            Err(Trouble::Failed(error)) => panic!("{error}"),
        }
    }

    #[test]
    fn places_stay_below_the_root() {
        assert_eq!(read("/memories"), Ok(None));
        assert_eq!(read("/memories/"), Ok(None));
        assert_eq!(read("/memories//a/./b/../c.md"), Ok(Some("/a/c.md".into())));
        for outside in ["/etc/passwd", "a.txt", "/memoriesx", ""] {
            assert_eq!(read(outside), Err(format!("Path must start with /memories, got: {outside}")));
        }
        for climbing in ["/memories/../etc/passwd", "/memories/a/../../x"] {
            assert_eq!(read(climbing), Err(format!("Path {climbing} would escape /memories directory")));
        }
        assert!(read("/memories/a\u{202e}b").is_err());
    }

    #[test]
    fn sizes_are_read_by_people() {
        let sizes = [0, 12, 1_023, 1_024, 1_536, 10_000, 1_048_576, 5_000_000_000].map(size);
        assert_eq!(sizes, ["0B", "12B", "1023B", "1K", "1.5K", "9.8K", "1M", "4768.4M"]);
    }
}
