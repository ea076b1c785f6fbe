//! The folder: what lies in it, and how texts get into it. Nothing here follows a symbolic link or leaves the folder,
//! and a file is never seen half written.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use stele_core::hash::Sha256;
use stele_core::limits::Limits;
use stele_core::path::{MAX_SEGMENTS, MemoryPath};
use stele_core::scratch::{Made, Scratch, scratch};

use crate::SyncError;
use crate::names::{OWN, is_reserved};
use crate::plan::Local;
use crate::state::Stat;

/// Most files of a folder; a store has room for a tenth of it.
const MOST_FILES: usize = 100_000;
/// How long a temporary name must lie still to count.
const STILL_NS: i64 = 30 * 1_000_000_000;
/// How old a file must be to be recognised by its times: file systems tell them in steps.
const FRESH_NS: i64 = 1_000_000_000;
const STATE: &str = "state.json";
const DISPLACED: &str = "displaced";
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder of one store.
pub(crate) struct Folder {
    dir: PathBuf,
    /// `None` for a dry run on a folder that is not there.
    root: Option<OwnedFd>,
    /// Our own directory in it; `None` in a dry run before the first sync.
    own: Option<OwnedFd>,
    /// Held as long as the folder is open, so that two processes never sync it.
    lock: Option<OwnedFd>,
    mode: Mode,
    temporary: AtomicU64,
}

/// A file, or what else lies at a path.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) local: Local,
    /// Its look from outside; of regular files only.
    pub(crate) stat: Option<Stat>,
}

/// All that lies in the folder.
pub(crate) struct Scan {
    /// By path in the store.
    pub(crate) entries: BTreeMap<String, Entry>,
    /// What can have no path in the store, and why.
    pub(crate) outside: Vec<(String, String)>,
    /// The file system's present time.
    pub(crate) now_ns: i64,
}

impl Scan {
    /// The look of a file by which it will be recognised, if it is old enough.
    pub(crate) fn recognisable(&self, stat: Option<Stat>) -> Option<Stat> {
        stat.filter(|stat| stat.ctime_ns < self.now_ns - FRESH_NS)
    }
}

/// What is known about files already.
pub(crate) trait Known {
    /// The hash of the file at `path`, if it still looks so.
    fn hash(&self, path: &str, stat: &Stat) -> Option<Sha256>;
    /// Whether the store has, or had, a memory there: such a name is never scratch.
    fn is_memory(&self, path: &str) -> bool;
}

/// How a change of a file ended.
pub(crate) enum Put {
    /// It is done.
    Done,
    /// The file is not the one that was looked at.
    Changed,
    /// Something lies in the way.
    Blocked(String),
}

fn stat_of(stat: &rustix::fs::Stat) -> Stat {
    let ns = |secs: i64, ns: i64| secs.saturating_mul(1_000_000_000).saturating_add(ns);
    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    Stat {
        size_bytes: stat.st_size as u64,
        mtime_ns: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        ctime_ns: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        inode: stat.st_ino as u64,
    }
}

fn file_type(stat: &rustix::fs::Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

/// The directory part of a path, without a slash at its end, and the name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn in_the_way(errno: Errno) -> Option<String> {
    match errno {
        Errno::NOTDIR => Some("a file lies where its directory should be".into()),
        Errno::LOOP => Some("a symbolic link lies where its directory should be".into()),
        Errno::NAMETOOLONG => Some("its name is too long for this file system".into()),
        Errno::ILSEQ | Errno::INVAL => Some("this file system does not take its name".into()),
        Errno::ACCESS | Errno::PERM => Some("its directory may not be written".into()),
        _ => None,
    }
}

impl Folder {
    /// Opens the folder, and makes it where it is missing. With `look_only` nothing is made.
    ///
    /// # Errors
    /// It cannot be opened or made, or another process syncs it.
    pub(crate) fn open(dir: &Path, mode: u32, look_only: bool) -> Result<Self, SyncError> {
        let folder = |root, own, lock| Self {
            dir: dir.to_owned(),
            root,
            own,
            lock,
            mode: Mode::from_raw_mode(mode),
            temporary: AtomicU64::new(0),
        };
        if !look_only {
            std::fs::create_dir_all(dir).map_err(|error| SyncError::io("cannot make", dir, error))?;
        } else if !dir.exists() {
            return Ok(folder(None, None, None));
        }
        // The folder itself may be reached through a link: the person named it.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(dir, flags, Mode::empty())
            .map_err(|error| SyncError::io("cannot open", dir, error))?;
        let failed = |error: Errno| SyncError::io("cannot use", dir.join(OWN), error);
        if !look_only {
            make_dir(&root, OWN, 0o700).map_err(failed)?;
        }
        let own = match rustix::fs::openat(&root, OWN, DIRECTORY, Mode::empty()) {
            Ok(own) => own,
            Err(Errno::NOENT) if look_only => return Ok(folder(Some(root), None, None)),
            Err(error) => return Err(failed(error)),
        };
        let lock = if look_only { None } else { Some(lock(&own, dir)?) };
        let folder = folder(Some(root), Some(own), lock);
        folder.clear_temporary();
        Ok(folder)
    }

    /// Removes what a killed process left behind.
    fn clear_temporary(&self) {
        let (Some(own), true) = (&self.own, self.lock.is_some()) else { return };
        for entry in Dir::read_from(own).into_iter().flatten().flatten() {
            if entry.file_name().to_bytes().starts_with(b"new-") {
                let _ = rustix::fs::unlinkat(own, entry.file_name(), AtFlags::empty());
            }
        }
    }

    fn own(&self) -> Result<&OwnedFd, SyncError> {
        self.own.as_ref().ok_or_else(|| SyncError::io("cannot use", self.dir.join(OWN), Errno::NOENT))
    }

    fn root(&self) -> rustix::io::Result<&OwnedFd> {
        self.root.as_ref().ok_or(Errno::NOENT)
    }

    /// What was written down about the last pass.
    pub(crate) fn state(&self) -> Result<Option<Vec<u8>>, SyncError> {
        let Some(own) = &self.own else { return Ok(None) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(own, STATE, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(SyncError::io("cannot read", self.state_file(), error)),
        };
        let mut bytes = Vec::new();
        (&file)
            .read_to_end(&mut bytes)
            .map_err(|error| SyncError::io("cannot read", self.state_file(), error))?;
        Ok(Some(bytes))
    }

    /// Where that lies.
    pub(crate) fn state_file(&self) -> PathBuf {
        self.dir.join(OWN).join(STATE)
    }

    /// Writes down what the next pass begins with, after all texts that it speaks of have reached the disk.
    pub(crate) fn keep_state(&self, bytes: &[u8]) -> Result<(), SyncError> {
        let own = self.own()?;
        let failed = |error: io::Error| SyncError::io("cannot write", self.state_file(), error);
        let keep = || -> io::Result<()> {
            #[cfg(target_os = "linux")]
            rustix::fs::syncfs(own)?;
            let (file, name) = self.new_file(own, Mode::from_raw_mode(0o600))?;
            (&file).write_all(bytes)?;
            file.sync_all()?;
            rustix::fs::renameat(own, name.as_str(), own, STATE)?;
            Ok(rustix::fs::fsync(own)?)
        };
        keep().map_err(failed)
    }

    /// Fails where the folder was taken away or replaced under us: files would seem to be deleted.
    pub(crate) fn check(&self) -> Result<(), SyncError> {
        let (Ok(root), Some(own)) = (self.root(), &self.own) else { return Ok(()) };
        let now = rustix::fs::stat(&self.dir).and_then(|dir| {
            let same = dir.st_ino == rustix::fs::fstat(root)?.st_ino;
            let there = rustix::fs::statat(root, OWN, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(same && there.st_ino == rustix::fs::fstat(own)?.st_ino)
        });
        match now {
            Ok(true) => Ok(()),
            _ => Err(SyncError::io("the folder was replaced or emptied meanwhile:", &self.dir, Errno::STALE)),
        }
    }

    /// The file system's present time, as it writes it on files.
    fn now_ns(&self) -> rustix::io::Result<i64> {
        let Some(own) = self.own.as_ref().filter(|_| self.lock.is_some()) else { return Ok(i64::MAX) };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(own, "clock", flags, Mode::from_raw_mode(0o600))?;
        rustix::io::write(&file, b".")?;
        Ok(stat_of(&rustix::fs::fstat(&file)?).mtime_ns)
    }

    /// Opens a directory of the folder, `""` being the folder itself, without following links.
    fn open_dir(&self, path: &str, make: bool) -> rustix::io::Result<OwnedFd> {
        let mut at = rustix::io::fcntl_dupfd_cloexec(self.root()?, 0)?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            at = match rustix::fs::openat(&at, name, DIRECTORY, Mode::empty()) {
                Err(Errno::NOENT) if make => {
                    make_dir(&at, name, 0o755)?;
                    rustix::fs::openat(&at, name, DIRECTORY, Mode::empty())?
                }
                other => other?,
            };
        }
        Ok(at)
    }

    /// Looks at everything in the folder.
    ///
    /// # Errors
    /// Something cannot be read. What is not seen would seem to be deleted, so nothing is done then.
    pub(crate) fn scan(&self, known: &impl Known) -> Result<Scan, SyncError> {
        let now_ns =
            self.now_ns().map_err(|error| SyncError::io("cannot write in", self.dir.join(OWN), error))?;
        let mut scan = Scan { entries: BTreeMap::new(), outside: Vec::new(), now_ns };
        let mut waiting = if self.root.is_some() { vec![String::new()] } else { Vec::new() };
        let mut seen = 0;
        while let Some(path) = waiting.pop() {
            let failed = |error: Errno| {
                SyncError::io("cannot read", self.dir.join(path.trim_start_matches('/')), error)
            };
            let dir = match self.open_dir(&path, false) {
                Ok(dir) => dir,
                // It was there a moment ago.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(error) => return Err(failed(error)),
            };
            for entry in Dir::read_from(&dir).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name == "." || name == ".." {
                    continue;
                }
                seen += 1;
                if seen > MOST_FILES {
                    return Err(SyncError::io("more than 100,000 files lie in", &self.dir, Errno::FBIG));
                }
                self.look(&dir, &path, name, known, &mut scan, &mut waiting).map_err(failed)?;
            }
        }
        Ok(scan)
    }

    fn look(
        &self,
        dir: &OwnedFd,
        parent: &str,
        name: &OsStr,
        known: &impl Known,
        scan: &mut Scan,
        waiting: &mut Vec<String>,
    ) -> rustix::io::Result<()> {
        let Some(name) = name.to_str() else {
            let shown = format!("{parent}/{}", name.to_string_lossy());
            scan.outside.push((shown, "its name is not UTF-8".into()));
            return Ok(());
        };
        if is_reserved(name) {
            return Ok(());
        }
        let path = format!("{parent}/{name}");
        let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            stat => stat?,
        };
        if file_type(&stat) == FileType::Directory {
            if path.matches('/').count() < MAX_SEGMENTS {
                waiting.push(path);
            } else {
                scan.outside.push((path, format!("lies deeper than {MAX_SEGMENTS} names")));
            }
            return Ok(());
        }
        let look = stat_of(&stat);
        if !known.is_memory(&path) {
            let private = Mode::from_raw_mode(stat.st_mode) == Mode::from_raw_mode(0o600);
            let made = if private { Made::Exclusively } else { Made::Plainly };
            let moving = look.mtime_ns > scan.now_ns.saturating_sub(STILL_NS);
            match scratch(name, made) {
                Some(Scratch::Litter) => return Ok(()),
                // Programs write to such a name before they rename. It counts once it has lain still for a while.
                Some(Scratch::Temporary) if moving => return Ok(()),
                Some(Scratch::Temporary) | None => {}
            }
        }
        if let Err(error) = MemoryPath::parse(&path) {
            scan.outside.push((path, format!("its path {error}")));
            return Ok(());
        }
        let foreign = |why: &str| Entry { local: Local::Foreign(why.into()), stat: None };
        let entry = match file_type(&stat) {
            FileType::RegularFile => match known.hash(&path, &look) {
                Some(hash) => Entry { local: Local::Text(hash), stat: Some(look) },
                None => match self.read(dir, name)? {
                    Some((local, stat)) => Entry { local, stat: Some(stat) },
                    None => return Ok(()),
                },
            },
            FileType::Symlink => foreign("is a symbolic link"),
            _ => foreign("is neither a file nor a directory"),
        };
        scan.entries.insert(path, entry);
        Ok(())
    }

    /// What a regular file holds; `None` where it is gone.
    fn read(&self, dir: &OwnedFd, name: &str) -> rustix::io::Result<Option<(Local, Stat)>> {
        // NONBLOCK: a pipe that took the file's place must not hold us up.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error),
        };
        let stat = rustix::fs::fstat(&file)?;
        if file_type(&stat) != FileType::RegularFile {
            return Ok(None);
        }
        let local = match text(&file)? {
            Ok(text) => Local::Text(Sha256::of(text.as_bytes())),
            Err(why) => Local::Unfit(why),
        };
        Ok(Some((local, stat_of(&stat))))
    }

    /// The text of the file at `path`, if it has this hash.
    pub(crate) fn text(&self, path: &str, hash: Sha256) -> Option<String> {
        let (parent, name) = split(path);
        let dir = self.open_dir(parent, false).ok()?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&dir, name, flags, Mode::empty()).ok()?);
        text(&file).ok()?.ok().filter(|text| Sha256::of(text.as_bytes()) == hash)
    }

    /// A new file of our own to write into.
    fn new_file(&self, own: &OwnedFd, mode: Mode) -> io::Result<(File, String)> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = format!("new-{}-{}", std::process::id(), self.temporary.fetch_add(1, Ordering::Relaxed));
        Ok((File::from(rustix::fs::openat(own, name.as_str(), flags, mode)?), name))
    }

    /// What keeps the file at `name` from being changed: it is no longer what was looked at, or no file.
    fn obstacle(dir: &OwnedFd, name: &str, before: Option<Stat>) -> rustix::io::Result<Option<Put>> {
        match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(before.is_some().then_some(Put::Changed)),
            Err(error) => Err(error),
            Ok(stat) if file_type(&stat) == FileType::Directory => {
                // An empty directory is nothing that anybody loses.
                match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
                    Ok(()) => Ok(before.is_some().then_some(Put::Changed)),
                    Err(_) => Ok(Some(Put::Blocked("a directory with files in it lies there".into()))),
                }
            }
            Ok(stat) => {
                let same = file_type(&stat) == FileType::RegularFile && before == Some(stat_of(&stat));
                Ok((!same).then_some(Put::Changed))
            }
        }
    }

    /// Writes a text to `path` in one step, if the file there still looks like `before`.
    pub(crate) fn write(&self, path: &str, text: &str, before: Option<Stat>) -> Result<Put, SyncError> {
        let failed = |error: io::Error| SyncError::io("cannot write", self.shown(path), error);
        let own = self.own()?;
        let (parent, name) = split(path);
        let dir = match self.open_dir(parent, true) {
            Ok(dir) => dir,
            Err(error) => return in_the_way(error).map(Put::Blocked).ok_or_else(|| failed(error.into())),
        };
        let put = || -> io::Result<Put> {
            if let Some(obstacle) = Self::obstacle(&dir, name, before)? {
                return Ok(obstacle);
            }
            let (file, new) = self.new_file(own, self.mode)?;
            let written = (&file).write_all(text.as_bytes()).and_then(|()| {
                #[cfg(not(target_os = "linux"))]
                file.sync_all()?;
                Ok(rustix::fs::renameat(own, new.as_str(), &dir, name)?)
            });
            if let Err(error) = written {
                let _ = rustix::fs::unlinkat(own, new.as_str(), AtFlags::empty());
                let errno = Errno::from_io_error(&error);
                return errno.and_then(in_the_way).map(Put::Blocked).ok_or(error);
            }
            Ok(Put::Done)
        };
        put().map_err(failed)
    }

    /// Deletes the file at `path`, if it still looks like `before`, and the directories that this leaves empty.
    pub(crate) fn remove(&self, path: &str, before: Option<Stat>) -> Result<Put, SyncError> {
        let failed = |error: Errno| SyncError::io("cannot delete", self.shown(path), error);
        let (mut parent, name) = split(path);
        let dir = match self.open_dir(parent, false) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(Put::Changed),
            Err(error) => return Err(failed(error)),
        };
        if let Some(obstacle) = Self::obstacle(&dir, name, before).map_err(failed)? {
            return Ok(obstacle);
        }
        match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return in_the_way(error).map(Put::Blocked).ok_or_else(|| failed(error)),
        }
        while !parent.is_empty() {
            let (above, name) = split(parent);
            let Ok(dir) = self.open_dir(above, false) else { break };
            if rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
            parent = above;
        }
        Ok(Put::Done)
    }

    /// Keeps the file at `path` aside; says where, and how the file looks with the second name that it may have now.
    pub(crate) fn keep_aside(&self, path: &str) -> Result<(PathBuf, Option<Stat>), SyncError> {
        let failed = |error: io::Error| SyncError::io("cannot keep aside", self.shown(path), error);
        let own = self.own()?;
        let (parent, name) = split(path);
        let keep = || -> io::Result<String> {
            make_dir(own, DISPLACED, 0o700)?;
            let aside = rustix::fs::openat(own, DISPLACED, DIRECTORY, Mode::empty())?;
            let dir = self.open_dir(parent, false)?;
            let flat: String = path.trim_start_matches('/').replace('/', "__").chars().take(50).collect();
            for number in 1_u64.. {
                let kept = format!("{number}-{flat}");
                // A second name of the same file: whoever has it open goes on writing into what was kept.
                match rustix::fs::linkat(&dir, name, &aside, kept.as_str(), AtFlags::empty()) {
                    Ok(()) => return Ok(kept),
                    Err(Errno::EXIST) => {}
                    Err(_) => {
                        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                        let mut from = File::from(rustix::fs::openat(&dir, name, flags, Mode::empty())?);
                        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                        let to = rustix::fs::openat(&aside, kept.as_str(), flags, Mode::from_raw_mode(0o600));
                        match to {
                            Err(Errno::EXIST) => continue,
                            to => io::copy(&mut from, &mut File::from(to?))?,
                        };
                        return Ok(kept);
                    }
                }
            }
            Err(Errno::EXIST.into())
        };
        let kept = self.dir.join(OWN).join(DISPLACED).join(keep().map_err(failed)?);
        let dir = self.open_dir(parent, false).map_err(|error| failed(error.into()))?;
        let now = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
        Ok((kept, now.ok().as_ref().map(stat_of)))
    }

    /// Whether only what is reserved lies in the folder.
    pub(crate) fn is_empty(&self) -> Result<bool, SyncError> {
        let Some(root) = &self.root else { return Ok(true) };
        let failed = |error: Errno| SyncError::io("cannot read", &self.dir, error);
        for entry in Dir::read_from(root).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." && !std::str::from_utf8(name).is_ok_and(is_reserved) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn shown(&self, path: &str) -> PathBuf {
        self.dir.join(path.trim_start_matches('/'))
    }
}

fn make_dir(at: &OwnedFd, name: &str, mode: u32) -> rustix::io::Result<()> {
    match rustix::fs::mkdirat(at, name, Mode::from_raw_mode(mode)) {
        Err(Errno::EXIST) => Ok(()),
        other => other,
    }
}

fn lock(own: &OwnedFd, dir: &Path) -> Result<OwnedFd, SyncError> {
    let failed = |error: Errno| SyncError::io("cannot lock", dir.join(OWN), error);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(own, "lock", flags, Mode::from_raw_mode(0o600)).map_err(failed)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(SyncError::InUse(dir.to_owned())),
        Err(error) => Err(failed(error)),
    }
}

/// The text of a file that can be a memory's; one sentence about one that cannot.
fn text(file: &File) -> rustix::io::Result<Result<String, String>> {
    let most = Limits::default().content_bytes;
    let mut bytes = Vec::new();
    // Not by its stated size: a file may grow while it is read.
    let read = file.take(most as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    if bytes.len() > most {
        return Ok(Err(format!("is larger than a memory may be ({most} bytes)")));
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => Err("is binary: it holds a NUL".into()),
        Ok(text) => Ok(text),
        Err(_) => Err("is binary, or text that is not UTF-8".into()),
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Nothing;

    impl Known for Nothing {
        fn hash(&self, _: &str, _: &Stat) -> Option<Sha256> {
            None
        }

        fn is_memory(&self, _: &str) -> bool {
            false
        }
    }

    fn folder() -> (tempfile::TempDir, Folder) {
        let dir = tempfile::tempdir().expect("a directory");
        let folder = Folder::open(dir.path(), 0o644, false).expect("a folder");
        (dir, folder)
    }

    fn stat(folder: &Folder, path: &str) -> Option<Stat> {
        folder.scan(&Nothing).expect("a scan").entries.get(path).and_then(|entry| entry.stat)
    }

    #[test]
    fn a_text_is_written_whole_over_what_was_looked_at_only() {
        let (dir, folder) = folder();
        assert!(matches!(folder.write("/d/a.md", "one", None), Ok(Put::Done)));
        let file = dir.path().join("d/a.md");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "one");
        assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o644);
        let seen = stat(&folder, "/d/a.md");
        std::fs::write(&file, "an edit meanwhile").expect("written");
        assert!(matches!(folder.write("/d/a.md", "two", seen), Ok(Put::Changed)));
        assert!(matches!(folder.remove("/d/a.md", seen), Ok(Put::Changed)));
        assert!(matches!(folder.write("/d/a.md", "two", None), Ok(Put::Changed)), "it was not there before");
        assert_eq!(std::fs::read_to_string(&file).expect("a file"), "an edit meanwhile");
        let seen = stat(&folder, "/d/a.md");
        assert!(matches!(folder.remove("/d/a.md", seen), Ok(Put::Done)));
        assert!(!dir.path().join("d").exists(), "the directory that this left empty is gone");
    }

    #[test]
    fn links_are_never_followed_and_what_lies_in_the_way_is_named() {
        let (dir, folder) = folder();
        let outside = tempfile::tempdir().expect("a directory");
        std::fs::write(outside.path().join("secret"), "s").expect("written");
        symlink(outside.path(), dir.path().join("d")).expect("a link");
        symlink(outside.path().join("secret"), dir.path().join("l")).expect("a link");
        std::fs::write(dir.path().join("file"), "f").expect("written");
        std::fs::create_dir_all(dir.path().join("full/x")).expect("a directory");
        let blocked = |path: &str| matches!(folder.write(path, "x", None), Ok(Put::Blocked(_)));
        assert!(blocked("/d/a.md") && blocked("/file/a.md") && blocked("/full"));
        assert!(matches!(folder.write("/l", "x", None), Ok(Put::Changed)));
        assert!(folder.text("/l", Sha256::of(b"s")).is_none());
        assert_eq!(std::fs::read_dir(outside.path()).expect("a directory").count(), 1);
        let scan = folder.scan(&Nothing).expect("a scan");
        assert!(matches!(scan.entries["/l"].local, Local::Foreign(_)));
        assert!(matches!(scan.entries["/d"].local, Local::Foreign(_)));
    }

    #[test]
    fn what_is_kept_aside_has_a_name_of_its_own_each_time() {
        let (dir, folder) = folder();
        std::fs::write(dir.path().join("a.md"), "mine").expect("written");
        let (first, now) = folder.keep_aside("/a.md").expect("kept");
        let (second, _) = folder.keep_aside("/a.md").expect("kept");
        assert!(first != second && std::fs::read_to_string(&second).expect("a file") == "mine");
        assert_eq!(now.map(|stat| stat.size_bytes), Some(4));
    }

    #[test]
    fn one_process_at_a_time_and_none_on_a_folder_that_was_replaced() {
        let (dir, folder) = folder();
        assert!(matches!(Folder::open(dir.path(), 0o644, false), Err(SyncError::InUse(_))));
        assert!(folder.check().is_ok());
        std::fs::remove_dir_all(dir.path().join(OWN)).expect("removed");
        assert!(folder.check().is_err());
    }

    #[test]
    fn temporary_names_wait_and_scratch_names_never_count() {
        let (dir, folder) = folder();
        for name in ["a.md", "b.tmp", ".a.md.swp", "c.md~", "tmpab12cd34"] {
            std::fs::write(dir.path().join(name), "x").expect("written");
        }
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(dir.path().join("tmpab12cd34"), private).expect("set");
        let found = || folder.scan(&Nothing).expect("a scan").entries.into_keys().collect::<Vec<_>>();
        assert_eq!(found(), ["/a.md"]);
        let old = std::fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
        for name in ["b.tmp", ".a.md.swp", "tmpab12cd34"] {
            let file = File::options().write(true).open(dir.path().join(name)).expect("a file");
            file.set_times(old).expect("set");
        }
        assert_eq!(found(), ["/a.md", "/b.tmp", "/tmpab12cd34"]);
    }
}
