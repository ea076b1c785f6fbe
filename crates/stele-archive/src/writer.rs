//! Writing, piece by piece: [`Writer::take`] gives what is ready.

use std::io;
use std::ops::Range;

use sha2::Digest;
use stele_core::feed::Past;
use stele_core::hash::Sha256;
use stele_core::model::Memory;
use stele_core::path::MemoryPath;
use stele_core::time::Timestamp;
use zstd::stream::write::Encoder;

use crate::entries;
use crate::manifest::{ENTRY, EndLine, IndexLine, IndexRow, Manifest, PastLine};

/// zstd's own default.
const LEVEL: i32 = 3;
/// A file of rows ends with the row that reaches this many bytes.
pub(crate) const ROWS_BYTES: usize = 1 << 20;
/// Most memories that an index is of, and most bytes of contents, before the contents follow.
const GROUP: (usize, u64) = (500, 1 << 20);

/// An archive, or a tree of Markdown files, in the making. The same calls give the same bytes.
pub struct Writer {
    out: Encoder<'static, Vec<u8>>,
    /// When the store last changed, in seconds: the time of files that have none of their own.
    mtime: u64,
    indexes: u64,
    histories: u64,
    lines: Vec<u8>,
    versions: u64,
    marks: u64,
    hash: sha2::Sha256,
}

/// The memories of a tree in groups: an archive has the index of a group, then its contents, then the next index.
pub fn groups(memories: &[Memory]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        let (mut end, mut bytes) = (from, 0);
        while end < memories.len() && end - from < GROUP.0 && bytes < GROUP.1 {
            bytes += memories[end].size_bytes;
            end += 1;
        }
        let group = from..end;
        from = end;
        (!group.is_empty()).then_some(group)
    })
}

fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_micros() / 1_000_000).unwrap_or(0)
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("a row is always JSON")
}

impl Writer {
    /// A tree of Markdown files: [`Self::file`] for each.
    ///
    /// # Errors
    /// The compressor's.
    pub fn tree() -> io::Result<Self> {
        let mut out = Encoder::new(Vec::new(), LEVEL)?;
        out.include_checksum(true)?;
        Ok(Self {
            out,
            mtime: 0,
            indexes: 0,
            histories: 0,
            lines: Vec::new(),
            versions: 0,
            marks: 0,
            hash: sha2::Sha256::default(),
        })
    }

    /// An archive: for each of [`groups`] the index and then each content, by path; then the whole history, oldest first.
    ///
    /// # Errors
    /// The compressor's.
    pub fn archive(manifest: &Manifest) -> io::Result<Self> {
        let mut writer = Self::tree()?;
        writer.mtime = Timestamp::parse(&manifest.store.changed_at).map_or(0, seconds);
        let mut text = serde_json::to_vec_pretty(manifest).expect("a manifest is always JSON");
        text.push(b'\n');
        entries::append(&mut writer.out, ENTRY, writer.mtime, &text)?;
        Ok(writer)
    }

    /// A memory as a Markdown file of a tree.
    ///
    /// # Errors
    /// The compressor's.
    pub fn file(&mut self, path: &MemoryPath, updated_at: Timestamp, text: &str) -> io::Result<()> {
        let name = &path.as_str()[1..];
        // An archive's own entry has that name, and a reader knows an archive by it; this one unpacks to the same file.
        let dotted = (name == ENTRY).then(|| format!("./{name}"));
        let name = dotted.as_deref().unwrap_or(name);
        entries::append(&mut self.out, name, seconds(updated_at), text.as_bytes())
    }

    /// The index of a group.
    ///
    /// # Errors
    /// The compressor's.
    pub fn index(&mut self, rows: &[IndexRow]) -> io::Result<()> {
        let mut lines = Vec::new();
        for row in rows {
            lines.extend_from_slice(&json(&IndexLine::of(row)));
            lines.push(b'\n');
        }
        self.indexes += 1;
        entries::append(&mut self.out, &format!("index/{:06}.jsonl", self.indexes), self.mtime, &lines)
    }

    /// The content of the next memory of the index.
    ///
    /// # Errors
    /// The compressor's.
    pub fn content(&mut self, memory: &Memory, content: &[u8]) -> io::Result<()> {
        let name = format!("memories{}", memory.path);
        entries::append(&mut self.out, &name, seconds(memory.updated_at), content)
    }

    /// The next entry of the history.
    ///
    /// # Errors
    /// The compressor's.
    pub fn past(&mut self, past: &Past) -> io::Result<()> {
        match past {
            Past::Version(_) => self.versions += 1,
            Past::Mark(_) => self.marks += 1,
        }
        let mut line = json(&PastLine::of(past));
        line.push(b'\n');
        self.hash.update(&line);
        self.lines.extend_from_slice(&line);
        if self.lines.len() >= ROWS_BYTES { self.history() } else { Ok(()) }
    }

    fn history(&mut self) -> io::Result<()> {
        self.histories += 1;
        let name = format!("history/{:06}.jsonl", self.histories);
        entries::append(&mut self.out, &name, self.mtime, &std::mem::take(&mut self.lines))
    }

    /// What is ready so far.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.out.get_mut())
    }

    /// Ends an archive; `floor` is the newest sequence that retention removed.
    ///
    /// # Errors
    /// The compressor's.
    pub fn end_archive(mut self, floor: u64) -> io::Result<Vec<u8>> {
        if !self.lines.is_empty() {
            self.history()?;
        }
        let history_sha256 = Sha256::from_bytes(std::mem::take(&mut self.hash).finalize().into()).to_string();
        let end = EndLine { versions: self.versions, marks: self.marks, floor, history_sha256 };
        entries::append(&mut self.out, "end.json", self.mtime, &json(&end))?;
        self.end_tree()
    }

    /// Ends a tree.
    ///
    /// # Errors
    /// The compressor's.
    pub fn end_tree(mut self) -> io::Result<Vec<u8>> {
        entries::end(&mut self.out)?;
        self.out.finish()
    }
}
