//! One process a data directory: a lock that the operating system releases when its holder ends, however it ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::open::OpenError;

/// What holds a directory.
pub const LOCK_FILE: &str = "stele.lock";

/// A data directory held by this process until dropped.
#[derive(Debug)]
pub struct Locked {
    _file: File,
}

/// Takes the data directory for this process.
///
/// # Errors
/// [`OpenError::InUse`] with the process id of the holder, or the file system's.
pub fn lock(data_dir: &Path) -> Result<Locked, OpenError> {
    let path = data_dir.join(LOCK_FILE);
    let io = |source| OpenError::Io { path: path.clone(), source };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(io)?;
    take(&mut file, data_dir)?;
    file.set_len(0).map_err(io)?;
    file.rewind().map_err(io)?;
    writeln!(file, "{}", std::process::id()).map_err(io)?;
    Ok(Locked { _file: file })
}

/// Looks whether another process has the data directory, changing nothing.
///
/// # Errors
/// [`OpenError::InUse`] with the process id of the holder, or the file system's.
pub fn is_free(data_dir: &Path) -> Result<(), OpenError> {
    match File::open(data_dir.join(LOCK_FILE)) {
        Ok(mut file) => take(&mut file, data_dir),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(OpenError::Io { path: data_dir.join(LOCK_FILE), source }),
    }
}

fn take(file: &mut File, data_dir: &Path) -> Result<(), OpenError> {
    let io = |source| OpenError::Io { path: data_dir.join(LOCK_FILE), source };
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(io)?;
            Err(OpenError::InUse { data_dir: data_dir.to_owned(), holder: holder.trim().to_owned() })
        }
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}
