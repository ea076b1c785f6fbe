//! Reading, piece by piece, and never more than the bounds allow: what is read comes from anywhere.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read};

use sha2::Digest;
use stele_core::feed::Past;
use stele_core::hash::Sha256;
use stele_core::id::StoreId;
use stele_core::import::Problem;
use stele_core::limits::Limits;
use stele_core::path::MemoryPath;
use stele_core::text::{Content, Summary, TextError};
use zstd::stream::read::Decoder;

use crate::entries::{Entries, Kind};
use crate::manifest::{ENTRY, EndLine, FORMAT, IndexLine, IndexRow, Manifest, PastLine, TreeHash, VERSION};
use crate::markdown;
use crate::writer::ROWS_BYTES;

/// Most bytes of a manifest.
const MANIFEST: u64 = 256 * 1024;
/// Room for front matter beside a content.
const FRONT_MATTER: u64 = 64 * 1024;
/// Largest window of a compressor, as a power of two: 128 MB, which is `zstd --long`.
const WINDOW_LOG: u32 = 27;

/// How much may be read.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The caps of each memory.
    pub limits: Limits,
    /// Most bytes that all comes to, unpacked.
    pub unpacked_bytes: u64,
}

/// Why nothing more can be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It ends too early.
    #[error("the archive ends too early: it was not copied or not written whole")]
    Truncated,
    /// It unpacks to more than is taken.
    #[error("the archive unpacks to more than is taken from one")]
    TooLarge,
    /// It is no archive, or a damaged one.
    #[error("this is not an archive that can be read: {0}")]
    Malformed(String),
    /// A newer Stele wrote it.
    #[error("the archive has format version {0}: a newer Stele can read it")]
    Newer(u32),
    /// It cannot be read, or is no zstd.
    #[error("it is not a tar in zstd, or a damaged one: {0}")]
    Unreadable(io::Error),
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Truncated,
            io::ErrorKind::FileTooLarge => Self::TooLarge,
            _ => Self::Unreadable(error),
        }
    }
}

/// A memory, read.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its path.
    pub path: MemoryPath,
    /// Its summary; `None` where the file says nothing of one.
    pub summary: Option<Summary>,
    /// Its content.
    pub content: Content,
    /// What an archive's index says of it.
    pub row: Option<IndexRow>,
}

/// How an archive ends: what it was found to hold is what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Versions.
    pub versions: u64,
    /// Entries of the history without a version.
    pub marks: u64,
    /// The newest sequence that retention had removed.
    pub floor: u64,
}

/// What comes next.
#[derive(Debug)]
pub enum Item {
    /// It is an archive of this.
    Manifest(Box<Manifest>),
    /// A live memory.
    Memory(Box<Found>),
    /// An entry of the history.
    Past(Past),
    /// An entry that cannot be taken; the others can be read all the same.
    Bad(Problem),
    /// An archive ends well.
    End(End),
}

/// Reads an archive or a tree of Markdown files.
pub struct Reader<R: Read> {
    entries: Entries<Metered<Decoder<'static, BufReader<R>>>>,
    limits: Limits,
    stage: Stage,
}

enum Stage {
    /// Nothing was read yet.
    Start,
    /// Of Markdown files.
    Tree,
    /// Of an archive.
    Archive(Box<Archive>),
    /// Behind the end.
    Over,
}

struct Archive {
    manifest: Manifest,
    store: StoreId,
    /// Rows whose contents come next.
    pending: VecDeque<IndexRow>,
    tree: TreeHash,
    memories: u64,
    bytes: u64,
    lines: std::vec::IntoIter<Vec<u8>>,
    hash: sha2::Sha256,
    versions: u64,
    marks: u64,
}

/// Bytes counted against a bound.
struct Metered<R> {
    read: R,
    left: u64,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(read)
    }
}

fn bad(path: impl Into<String>, what: impl std::fmt::Display) -> Item {
    Item::Bad(Problem { path: path.into(), what: what.to_string() })
}

fn malformed(what: impl Into<String>) -> ArchiveError {
    ArchiveError::Malformed(what.into())
}

impl<R: Read> Reader<R> {
    /// Reads from `read`.
    ///
    /// # Errors
    /// The decompressor cannot be made.
    pub fn new(read: R, bounds: &Bounds) -> Result<Self, ArchiveError> {
        let mut decoder = Decoder::new(read)?;
        decoder.window_log_max(WINDOW_LOG)?;
        let metered = Metered { read: decoder, left: bounds.unpacked_bytes };
        Ok(Self { entries: Entries::new(metered), limits: bounds.limits.clone(), stage: Stage::Start })
    }

    /// What comes next; `None` at the end. An archive that ends without [`Item::End`] is an error.
    ///
    /// # Errors
    /// Nothing more can be read.
    #[expect(clippy::should_implement_trait, reason = "an error ends it")]
    pub fn next(&mut self) -> Result<Option<Item>, ArchiveError> {
        loop {
            match &mut self.stage {
                Stage::Over => return Ok(None),
                Stage::Archive(archive) => {
                    if let Some(line) = archive.lines.next() {
                        return Ok(Some(archive.past(&line, &self.limits)));
                    }
                }
                Stage::Start | Stage::Tree => {}
            }
            let Some(entry) = self.entries.next()? else {
                return match std::mem::replace(&mut self.stage, Stage::Over) {
                    Stage::Archive(_) => Err(ArchiveError::Truncated),
                    Stage::Start | Stage::Tree | Stage::Over => Ok(None),
                };
            };
            let name = match (entry.kind, entry.name) {
                (Kind::Directory, _) => continue,
                (Kind::Other(what), name) => {
                    let name = name.unwrap_or_else(|shown| shown);
                    self.stage = Stage::past_start(std::mem::replace(&mut self.stage, Stage::Over));
                    return Ok(Some(bad(name, format_args!("it is {what}: only files are taken"))));
                }
                (Kind::File, Err(shown)) => return Ok(Some(bad(shown, "its name is not UTF-8"))),
                (Kind::File, Ok(name)) => name,
            };
            if let Some(item) = self.file(&name, entry.size)? {
                return Ok(Some(item));
            }
        }
    }

    fn file(&mut self, name: &str, size: u64) -> Result<Option<Item>, ArchiveError> {
        if matches!(self.stage, Stage::Start) {
            self.stage = Stage::Tree;
            if name == ENTRY
                && let Some(body) = self.entries.body(MANIFEST)?
            {
                if let Some(archive) = Archive::begin(&body)? {
                    let manifest = Box::new(archive.manifest.clone());
                    self.stage = Stage::Archive(Box::new(archive));
                    return Ok(Some(Item::Manifest(manifest)));
                }
                return Ok(Some(self.markdown(name, Some(body), size)));
            }
        }
        let Stage::Archive(archive) = &mut self.stage else {
            let body = self.entries.body(self.limits.content_bytes as u64 + FRONT_MATTER)?;
            return Ok(Some(self.markdown(name, body, size)));
        };
        if let Some(row) = archive.pending.pop_front() {
            if name.strip_prefix("memories") != Some(row.memory.path.as_str()) {
                return Err(malformed(format!(
                    "{name} stands where the content of {} belongs",
                    row.memory.path
                )));
            }
            let body = self.entries.body(self.limits.content_bytes as u64)?;
            return Ok(Some(archive.content(row, body, &self.limits, size)));
        }
        let rows = ROWS_BYTES as u64 + self.limits.content_bytes as u64 * 6 + FRONT_MATTER;
        let body = self.entries.body(rows)?.ok_or_else(|| malformed(format!("{name} is too large")))?;
        if name.starts_with("index/") {
            return archive.index(&body, &self.limits).map(|()| None);
        }
        if name.starts_with("history/") {
            archive.history(&body)?;
            return Ok(None);
        }
        if name == "end.json" {
            let end = archive.end(&body)?;
            self.stage = Stage::Over;
            // Behind the end there is nothing; reading on checks that the frame is whole.
            if self.entries.next()?.is_some() {
                return Err(malformed("it goes on behind its end"));
            }
            return Ok(Some(Item::End(end)));
        }
        Err(malformed(format!("{name} does not belong into it")))
    }

    fn markdown(&self, name: &str, body: Option<Vec<u8>>, size: u64) -> Item {
        let relative = name.strip_prefix("./").unwrap_or(name);
        if relative.starts_with('/') {
            return bad(name, "its name is absolute");
        }
        let path = match MemoryPath::parse(&format!("/{relative}")) {
            Ok(path) => path,
            Err(error) => return bad(name, format_args!("its path {error}")),
        };
        let max = self.limits.content_bytes;
        let Some(body) = body else {
            let actual = usize::try_from(size).unwrap_or(usize::MAX);
            return bad(name, format_args!("its content {}", TextError::TooLarge { max, actual }));
        };
        let Ok(text) = String::from_utf8(body) else { return bad(name, "its text is not UTF-8") };
        let parts = markdown::decode(&text);
        let summary = parts.summary.map(|summary| Summary::parse(&summary, self.limits.summary_chars));
        let summary = match summary.transpose() {
            Ok(summary) => summary,
            Err(error) => return bad(name, format_args!("its summary {error}")),
        };
        match Content::parse(parts.content, max) {
            Ok(content) => Item::Memory(Box::new(Found { path, summary, content, row: None })),
            Err(error) => bad(name, format_args!("its content {error}")),
        }
    }
}

impl Stage {
    /// What begins with something else than a manifest is a tree.
    fn past_start(self) -> Self {
        match self {
            Self::Start => Self::Tree,
            other => other,
        }
    }
}

impl Archive {
    /// An archive with this manifest; `None` if it is a file like any other.
    fn begin(body: &[u8]) -> Result<Option<Self>, ArchiveError> {
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(body) else { return Ok(None) };
        if value.get("format").and_then(serde_json::Value::as_str) != Some(FORMAT) {
            return Ok(None);
        }
        let version = value.get("version").and_then(serde_json::Value::as_u64);
        match version.and_then(|version| u32::try_from(version).ok()) {
            Some(VERSION) => {}
            Some(newer) if newer > VERSION => return Err(ArchiveError::Newer(newer)),
            _ => return Err(malformed("its manifest names no version of the format")),
        }
        let manifest: Manifest = serde_json::from_value(value)
            .map_err(|error| malformed(format!("its manifest has the wrong shape: {error}")))?;
        Ok(Some(Self {
            store: manifest.store.id,
            manifest,
            pending: VecDeque::new(),
            tree: TreeHash::default(),
            memories: 0,
            bytes: 0,
            lines: Vec::new().into_iter(),
            hash: sha2::Sha256::default(),
            versions: 0,
            marks: 0,
        }))
    }

    fn index(&mut self, body: &[u8], limits: &Limits) -> Result<(), ArchiveError> {
        if self.versions + self.marks > 0 {
            return Err(malformed("an index stands behind the history"));
        }
        for line in lines(body) {
            let row = serde_json::from_slice::<IndexLine>(line).map_err(|error| error.to_string());
            let row = row.and_then(|row| row.parse(self.store, limits));
            self.pending
                .push_back(row.map_err(|what| malformed(format!("a row of its index is wrong: {what}")))?);
        }
        Ok(())
    }

    /// The content of a row: that it is the one that the row tells of is checked here.
    fn content(&mut self, row: IndexRow, body: Option<Vec<u8>>, limits: &Limits, size: u64) -> Item {
        let path = row.memory.path.clone();
        self.memories += 1;
        self.bytes = self.bytes.saturating_add(row.memory.size_bytes);
        self.tree.add(row.memory.content_sha256, &path);
        let max = limits.content_bytes;
        let Some(body) = body else {
            let actual = usize::try_from(size).unwrap_or(usize::MAX);
            return bad(path.as_str(), format_args!("its content {}", TextError::TooLarge { max, actual }));
        };
        let Ok(text) = String::from_utf8(body) else { return bad(path.as_str(), "its text is not UTF-8") };
        let content = match Content::parse(text, max) {
            Ok(content) => content,
            Err(error) => return bad(path.as_str(), format_args!("its content {error}")),
        };
        if content.sha256() != row.memory.content_sha256 || content.size_bytes() != row.memory.size_bytes {
            return bad(path.as_str(), "its content has another hash or size than the index says");
        }
        Item::Memory(Box::new(Found { path, summary: Some(row.summary.clone()), content, row: Some(row) }))
    }

    fn history(&mut self, body: &[u8]) -> Result<(), ArchiveError> {
        let tree = std::mem::take(&mut self.tree);
        let first = self.versions + self.marks == 0;
        if first {
            let manifest = &self.manifest;
            if self.memories != manifest.memories || self.bytes != manifest.bytes {
                return Err(malformed("its manifest counts other memories than there are"));
            }
            if tree.finish().to_string() != manifest.tree_sha256 {
                return Err(malformed("its manifest has another hash of the tree than there is"));
            }
        }
        self.hash.update(body);
        self.lines = lines(body).map(<[u8]>::to_vec).collect::<Vec<_>>().into_iter();
        Ok(())
    }

    fn past(&mut self, line: &[u8], limits: &Limits) -> Item {
        let line = match serde_json::from_slice::<PastLine>(line) {
            Ok(line) => line,
            Err(error) => {
                // Counted all the same, so that the end finds nothing else amiss.
                self.versions += 1;
                return bad("history", format_args!("a line is not one of a history: {error}"));
            }
        };
        match line {
            PastLine::Version(_) => self.versions += 1,
            PastLine::Mark(_) => self.marks += 1,
        }
        let sequence = line.sequence();
        match line.parse(self.store, limits) {
            Ok(past) => Item::Past(past),
            Err(what) => bad(format!("history, sequence {sequence}"), what),
        }
    }

    fn end(&mut self, body: &[u8]) -> Result<End, ArchiveError> {
        if self.versions + self.marks == 0 {
            // Without a history the tree was not compared yet.
            self.history(&[])?;
        }
        let end: EndLine = serde_json::from_slice(body)
            .map_err(|error| malformed(format!("its end has the wrong shape: {error}")))?;
        let hash = Sha256::from_bytes(std::mem::take(&mut self.hash).finalize().into());
        if hash.to_string() != end.history_sha256 {
            return Err(malformed("its history has another hash than its end says"));
        }
        if (end.versions, end.marks) != (self.versions, self.marks) {
            return Err(malformed("its end counts other entries than there are"));
        }
        Ok(End { versions: end.versions, marks: end.marks, floor: end.floor })
    }
}

fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}
