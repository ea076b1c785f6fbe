//! The files of a directory that can be memories, and why the others cannot.

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use stele_core::hash::Sha256;
use stele_core::path::MemoryPath;

use crate::failure::{Class, fail};

/// Most bytes of a memory as the server has it by default; it judges for itself.
pub(crate) const MOST_BYTES: u64 = 102_400;
/// Directories that are walked for each file that may be there.
const DIRECTORIES: usize = 10;
/// Where an export keeps what is not in its place yet: at the top of its directory, gone when it is done.
pub(crate) const PARTIAL: &str = ".stele-partial";

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
}

impl Walk {
    /// Walks `dir`; memories come to lie below `prefix`, which ends with `/`.
    ///
    /// # Errors
    /// It is no directory, or holds more than `most` files.
    pub(crate) fn below(dir: &Path, prefix: &str, most: usize) -> anyhow::Result<Self> {
        let Listing { files, unfit } = Listing::of(dir, most)?;
        let mut walk = Self { unfit, ..Self::default() };
        for PlainFile { file, name } in files {
            match fitting(&file, &format!("{prefix}{name}")) {
                Ok(found) => walk.found.push(found),
                Err(why) => walk.unfit.push(Unfit { file, why }),
            }
        }
        walk.unfit.sort_by(|a, b| a.file.cmp(&b.file));
        walk.found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(walk)
    }
}

/// A plain file and what it is called from the directory on, with slashes.
pub(crate) struct PlainFile {
    pub(crate) file: PathBuf,
    pub(crate) name: String,
}

/// The plain files below a directory, and what else lies there. Links are not followed, and nothing is opened.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) files: Vec<PlainFile>,
    pub(crate) unfit: Vec<Unfit>,
}

impl Listing {
    /// Lists `dir`. A repository's own files are no memories, and a mount refuses them too: `.git` is passed over.
    ///
    /// # Errors
    /// It is no directory, or holds more than `most` files.
    pub(crate) fn of(dir: &Path, most: usize) -> anyhow::Result<Self> {
        let mut listing = Self::default();
        if !dir.is_dir() {
            return Err(fail(Class::NotFound, format!("{} is not a directory", dir.display())));
        }
        // A stack of its own rather than recursion: how deep a foreign directory goes is not ours to say.
        let mut waiting = vec![(dir.to_owned(), String::new())];
        let mut directories = 0;
        while let Some((dir, prefix)) = waiting.pop() {
            directories += 1;
            let entries = fs::read_dir(&dir).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            match entries {
                Ok(entries) => {
                    entries.iter().for_each(|entry| listing.entry(entry, &prefix, &mut waiting));
                }
                Err(error) => listing.refuse(dir, format!("cannot be read: {error}")),
            }
            if listing.files.len() + listing.unfit.len() > most || directories > most * DIRECTORIES {
                let message = format!(
                    "there are more than {most} files: name a smaller directory, or raise --max-files"
                );
                return Err(fail(Class::Refused, message));
            }
        }
        Ok(listing)
    }

    fn refuse(&mut self, file: PathBuf, why: impl Into<String>) {
        self.unfit.push(Unfit { file, why: why.into() });
    }

    fn entry(&mut self, entry: &fs::DirEntry, prefix: &str, waiting: &mut Vec<(PathBuf, String)>) {
        let file = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            return self.refuse(file, "its name is not UTF-8");
        };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && name == ".git" => {}
            Ok(kind) if kind.is_dir() && name == PARTIAL && prefix.is_empty() => {}
            Ok(kind) if kind.is_dir() => waiting.push((file, format!("{prefix}{name}/"))),
            Ok(kind) if kind.is_file() => {
                self.files.push(PlainFile { file, name: format!("{prefix}{name}") });
            }
            Ok(kind) if kind.is_symlink() => self.refuse(file, "is a symbolic link"),
            Ok(_) => self.refuse(file, "is neither a file nor a directory"),
            Err(error) => self.refuse(file, format!("cannot be looked at: {error}")),
        }
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
    text_up_to(file, MOST_BYTES)
}

/// As [`text`], of at most so many bytes.
pub(crate) fn text_up_to(file: &Path, most: u64) -> Result<String, String> {
    // What was listed as a file may have become a link or a pipe: neither is followed or waited for.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(file);
    let opened = opened.map_err(|error| format!("cannot be read: {error}"))?;
    if !opened.metadata().is_ok_and(|about| about.is_file()) {
        return Err("is no plain file any more".into());
    }
    let mut bytes = Vec::new();
    // Not by its stated size: a file may grow while it is read.
    opened.take(most + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > most {
        return Err(format!("is larger than a memory may be ({MOST_BYTES} bytes)"));
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err("is binary: it holds a NUL".into()),
        Ok(text) => Ok(text),
        Err(_) => Err("is binary, or text that is not UTF-8".into()),
    }
}
