//! The files of a directory that can be memories, and why the others cannot.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use stele_core::hash::Sha256;
use stele_core::path::MemoryPath;

use crate::failure::{Class, fail};

/// Most bytes of a memory as the server has it by default; it judges for itself.
const MOST_BYTES: u64 = 102_400;

/// A file that can be a memory.
pub(crate) struct Found {
    pub(crate) file: PathBuf,
    pub(crate) path: MemoryPath,
    pub(crate) sha256: String,
    pub(crate) size_bytes: u64,
}

/// A file that cannot.
pub(crate) struct Unfit {
    pub(crate) file: PathBuf,
    pub(crate) why: String,
}

/// All files below a directory, by name.
#[derive(Default)]
pub(crate) struct Walk {
    pub(crate) found: Vec<Found>,
    pub(crate) unfit: Vec<Unfit>,
    seen: usize,
    most: usize,
}

impl Walk {
    /// Walks `dir`; memories come to lie below `prefix`, which ends with `/`.
    ///
    /// # Errors
    /// It is no directory, or holds more than `most` files.
    pub(crate) fn below(dir: &Path, prefix: &str, most: usize) -> anyhow::Result<Self> {
        let mut walk = Self { most, ..Self::default() };
        if !dir.is_dir() {
            return Err(fail(Class::NotFound, format!("{} is not a directory", dir.display())));
        }
        // A stack of its own rather than recursion: how deep a foreign directory goes is not ours to say.
        let mut waiting = vec![(dir.to_owned(), prefix.to_owned())];
        while let Some((dir, prefix)) = waiting.pop() {
            let mut entries = match fs::read_dir(&dir).and_then(Iterator::collect::<Result<Vec<_>, _>>) {
                Ok(entries) => entries,
                Err(error) => {
                    walk.refuse(dir, format!("cannot be read: {error}"));
                    continue;
                }
            };
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                walk.entry(&entry, &prefix, &mut waiting)?;
            }
        }
        walk.found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(walk)
    }

    fn refuse(&mut self, file: PathBuf, why: impl Into<String>) {
        self.unfit.push(Unfit { file, why: why.into() });
    }

    fn entry(
        &mut self,
        entry: &fs::DirEntry,
        prefix: &str,
        waiting: &mut Vec<(PathBuf, String)>,
    ) -> anyhow::Result<()> {
        self.seen += 1;
        if self.seen > self.most {
            let message = format!(
                "there are more than {} files: name a smaller directory, or raise --max-files",
                self.most
            );
            return Err(fail(Class::Refused, message));
        }
        let file = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            self.refuse(file, "its name is not UTF-8");
            return Ok(());
        };
        match entry.file_type() {
            // A repository's own files are no memories, and a mount refuses them too.
            Ok(kind) if kind.is_dir() && name == ".git" => {}
            Ok(kind) if kind.is_dir() => waiting.push((file, format!("{prefix}{name}/"))),
            Ok(kind) if kind.is_file() => match fitting(&file, &format!("{prefix}{name}")) {
                Ok(found) => self.found.push(found),
                Err(why) => self.refuse(file, why),
            },
            Ok(kind) if kind.is_symlink() => self.refuse(file, "is a symbolic link"),
            Ok(_) => self.refuse(file, "is neither a file nor a directory"),
            Err(error) => self.refuse(file, format!("cannot be looked at: {error}")),
        }
        Ok(())
    }
}

fn fitting(file: &Path, path: &str) -> Result<Found, String> {
    let path = MemoryPath::parse(path).map_err(|error| format!("its path {error}"))?;
    let text = text(file)?;
    let (sha256, size_bytes) = (Sha256::of(text.as_bytes()).to_string(), text.len() as u64);
    Ok(Found { file: file.to_owned(), path, sha256, size_bytes })
}

/// The text of a file that can be a memory's; one sentence about one that cannot.
pub(crate) fn text(file: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    // Not by its stated size: a file may grow while it is read.
    let read = fs::File::open(file).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(format!("is larger than a memory may be ({MOST_BYTES} bytes)"));
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err("is binary: it holds a NUL".into()),
        Ok(text) => Ok(text),
        Err(_) => Err("is binary, or text that is not UTF-8".into()),
    }
}
