//! The kernel's table of mounts: what stands at a path, whether it is dead, and taking it away.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

/// How long a mount may take to say that it lives.
const PATIENCE: Duration = Duration::from_secs(3);

/// An entry of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    pub(super) point: PathBuf,
    pub(super) kind: String,
    pub(super) source: String,
}

impl Mounted {
    /// Whether it is a FUSE mount.
    pub(super) fn is_fuse(&self) -> bool {
        self.kind == "fuse" || self.kind.starts_with("fuse.")
    }
}

/// Reads a line of `/proc/self/mountinfo`. proc_pid_mountinfo(5).
fn read(line: &str) -> Option<Mounted> {
    let (front, back) = line.split_once(" - ")?;
    let point = front.split(' ').nth(4)?;
    let mut back = back.split(' ');
    let kind = back.next()?.to_owned();
    Some(Mounted { point: unescaped(point), kind, source: back.next()?.to_owned() })
}

/// A field of the table, where blanks and the like are written in octal.
fn unescaped(field: &str) -> PathBuf {
    let bytes = field.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = field.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

/// What stands exactly at `point`, the uppermost last.
pub(super) fn at(point: &Path) -> std::io::Result<Vec<Mounted>> {
    let table = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(table.lines().filter_map(read).filter(|mounted| mounted.point == point).collect())
}

/// Whether a mount's process is gone. One that merely does not answer is not: it may be waiting for something.
pub(super) fn is_dead(point: &Path) -> bool {
    let (sender, receiver) = mpsc::channel();
    let path = point.to_owned();
    // A thread that hangs here ends with the process; asking in ours could hang for good.
    std::thread::spawn(move || sender.send(rustix::fs::statvfs(&path)));
    let dead = |errno| matches!(errno, Errno::NOTCONN | Errno::CONNABORTED);
    matches!(receiver.recv_timeout(PATIENCE), Ok(Err(errno)) if dead(errno))
}

/// Takes away the uppermost mount at `point`, also from under open files.
///
/// # Errors
/// The operating system refuses.
pub(super) fn take_away(point: &Path) -> anyhow::Result<()> {
    let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
    let refused = match rustix::mount::unmount(point, flags) {
        Ok(()) => return Ok(()),
        Err(Errno::PERM) => by_helper(point),
        Err(error) => Err(error.to_string()),
    };
    refused.map_err(|cause| anyhow::anyhow!("cannot unmount {}: {cause}", point.display()))
}

/// As an ordinary user.
fn by_helper(point: &Path) -> Result<(), String> {
    let mut helper = Command::new("fusermount3");
    helper.args(["-u", "-z", "--"]).arg(point).stdin(Stdio::null());
    let done = helper.output().map_err(|error| format!("fusermount3: {error}"))?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()) }
}

/// Takes away mounts at `point` whose process is gone. Whether a living one is left.
///
/// # Errors
/// The operating system refuses.
pub(super) fn clear(point: &Path) -> anyhow::Result<bool> {
    loop {
        match at(point)?.last() {
            None => return Ok(false),
            Some(mounted) if !mounted.is_fuse() => return Ok(false),
            Some(_) if is_dead(point) => take_away(point)?,
            Some(_) => return Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_with_its_optional_fields_and_octal_names() {
        let line = r"36 35 98:0 /mnt1 /mnt/two\040words\134x rw,noatime shared:1 master:2 - fuse.stele stele:notes rw,user_id=0";
        let mounted = read(line).expect("an entry");
        assert_eq!(mounted.point, PathBuf::from(r"/mnt/two words\x"));
        assert!(mounted.is_fuse() && mounted.source == "stele:notes");
        let plain = read("22 1 0:20 / /proc rw - proc proc rw").expect("an entry");
        assert!(!plain.is_fuse() && plain.point == Path::new("/proc"));
        assert_eq!(read("nonsense"), None);
    }

    #[test]
    fn a_directory_is_no_dead_mount() {
        assert!(!is_dead(Path::new("/")) && !is_dead(Path::new("/no/such/place")));
    }
}
