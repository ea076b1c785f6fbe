//! How much room the disk has: writes are refused below 1 GiB, or below 5 % of a disk where that is less, so that the
//! database never meets a full one and a small disk can be used at all.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LEAST_BYTES: u64 = 1 << 30;
const LEAST_PERCENT: u64 = 5;
/// How long a look is believed.
const BELIEVED: Duration = Duration::from_millis(250);

/// Watches the disk under a directory.
pub(crate) struct Space {
    dir: PathBuf,
    looked: Option<(Instant, bool)>,
}

impl Space {
    pub(crate) fn new(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), looked: None }
    }

    /// Whether there is room for more. A disk that cannot be asked is believed to have some.
    pub(crate) fn is_there(&mut self) -> bool {
        match self.looked {
            Some((at, answer)) if at.elapsed() < BELIEVED => answer,
            _ => {
                let answer = has_room(&self.dir);
                self.looked = Some((Instant::now(), answer));
                answer
            }
        }
    }
}

fn has_room(dir: &Path) -> bool {
    let Ok(disk) = rustix::fs::statvfs(dir) else { return true };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let total = disk.f_blocks.saturating_mul(disk.f_frsize);
    free >= LEAST_BYTES.min(total / 100 * LEAST_PERCENT)
}
