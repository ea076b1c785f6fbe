//! The place where stores are mounted: mount points, and the parent folder that a sandbox binds as a whole.
//!
//! As root the parent is a small tmpfs, shared, so that a mount that replaces a dead one shows up in sandboxes that
//! bound the parent; it is made read-only once the mount points stand. As an ordinary user it is a plain folder
//! without the permission to write. What was made here is taken away at the end, and nothing else.

use std::fs::Permissions;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};

use super::setup::Setup;
use super::table;
use crate::cli::Scratch;
use crate::failure::{Class, fail};
use crate::output::complain;

/// The source that the table of mounts names for the parent.
const SOURCE: &str = "stele";
/// Room for files outside of stores, where they are taken.
const SCRATCH: &std::ffi::CStr = c"mode=1777,size=256m";
/// Room for mount points alone.
const POINTS: &std::ffi::CStr = c"mode=0755,size=64k";

/// A prepared place.
pub(super) struct Place {
    dir: PathBuf,
    points: Vec<PathBuf>,
    /// Directories that were made here, in the order in which they were made.
    made: Vec<PathBuf>,
    parent: Parent,
    scratch: Scratch,
}

enum Parent {
    /// The one store is mounted at the place itself.
    None,
    /// A tmpfs of ours.
    Tmpfs,
    /// A plain folder.
    Folder,
}

impl Place {
    /// Makes mount points, and clears away what a mount that died left there.
    ///
    /// # Errors
    /// A living mount stands there, files lie there that a mount would hide, or the operating system refuses. Then
    /// nothing is left behind.
    pub(super) fn prepare(setup: &Setup) -> anyhow::Result<Self> {
        let mut place = Self {
            dir: setup.dir.clone(),
            points: setup.stores.iter().map(|store| store.dir.clone()).collect(),
            made: Vec::new(),
            parent: Parent::None,
            scratch: setup.parent.unwrap_or(Scratch::None),
        };
        let made = place.make(setup.parent);
        if made.is_err() {
            place.take_away();
        }
        made.map(|()| place)
    }

    /// The place that a supervisor prepared which is gone now.
    pub(super) fn inherit(setup: &Setup) -> Self {
        let tmpfs = || is_ours(&setup.dir).unwrap_or(false);
        let parent = match setup.parent {
            None => Parent::None,
            Some(_) if tmpfs() => Parent::Tmpfs,
            Some(_) => Parent::Folder,
        };
        Self {
            dir: setup.dir.clone(),
            points: setup.stores.iter().map(|store| store.dir.clone()).collect(),
            made: setup.made.clone(),
            parent,
            scratch: setup.parent.unwrap_or(Scratch::None),
        }
    }

    /// The directories that were made.
    pub(super) fn made(&self) -> &[PathBuf] {
        &self.made
    }

    fn make(&mut self, parent: Option<Scratch>) -> anyhow::Result<()> {
        self.clear(&self.dir.clone())?;
        self.make_dir(&self.dir.clone())?;
        if let Some(scratch) = parent {
            self.make_parent(scratch)?;
        }
        for point in self.points.clone() {
            self.clear(&point)?;
            self.make_dir(&point)?;
            let mut inside =
                std::fs::read_dir(&point).with_context(|| format!("cannot read {}", point.display()))?;
            if inside.next().is_some() {
                let message = format!("{} is not empty: a mount would hide what lies there", point.display());
                return Err(fail(Class::Conflict, message));
            }
        }
        Ok(())
    }

    fn clear(&self, point: &Path) -> anyhow::Result<()> {
        if table::clear(point)? {
            let message = format!("{} is mounted already: `stele mount stop` takes it away", point.display());
            return Err(fail(Class::Conflict, message));
        }
        Ok(())
    }

    /// Makes a directory with those above it, and remembers which were made.
    fn make_dir(&mut self, dir: &Path) -> anyhow::Result<()> {
        let missing: Vec<PathBuf> =
            dir.ancestors().take_while(|dir| !dir.exists()).map(Path::to_owned).collect();
        for dir in missing.into_iter().rev() {
            match std::fs::DirBuilder::new().mode(0o755).create(&dir) {
                Ok(()) => self.made.push(dir),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("cannot make {}", dir.display())),
            }
        }
        if !dir.is_dir() {
            return Err(fail(Class::Usage, format!("{} is not a directory", dir.display())));
        }
        Ok(())
    }

    fn make_parent(&mut self, scratch: Scratch) -> anyhow::Result<()> {
        let data = if scratch == Scratch::Session { SCRATCH } else { POINTS };
        if is_ours(&self.dir)? {
            // Left by a process that was killed, perhaps bound by sandboxes that run: it goes on being used.
            rustix::mount::mount_remount(&self.dir, MountFlags::NOSUID | MountFlags::NODEV, data)
                .with_context(|| format!("cannot make {} writable", self.dir.display()))?;
            self.parent = Parent::Tmpfs;
            return Ok(());
        }
        let mut inside =
            std::fs::read_dir(&self.dir).with_context(|| format!("cannot read {}", self.dir.display()))?;
        let empty = inside.next().is_none();
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        match rustix::mount::mount(SOURCE, &self.dir, "tmpfs", flags, data) {
            _ if !empty => {}
            Ok(()) => {
                self.parent = Parent::Tmpfs;
                // Not being shared costs the sandboxes that run a replaced mount, nothing else.
                if let Err(error) = rustix::mount::mount_change(&self.dir, MountPropagationFlags::SHARED) {
                    complain(&format!("{} cannot be shared with sandboxes: {error}", self.dir.display()));
                }
                return Ok(());
            }
            Err(Errno::PERM | Errno::ACCESS) => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot mount a tmpfs at {}", self.dir.display()));
            }
        }
        self.parent = Parent::Folder;
        self.permit(0o755);
        Ok(())
    }

    /// Sets the permissions of a plain parent that belongs to us alone.
    fn permit(&self, mode: u32) {
        let ours = self.made.contains(&self.dir) || self.holds_only_points();
        if matches!(self.parent, Parent::Folder) && ours {
            // Somebody else's folder keeps its permissions.
            let _ = std::fs::set_permissions(&self.dir, Permissions::from_mode(mode));
        }
    }

    fn holds_only_points(&self) -> bool {
        let Ok(mut inside) = std::fs::read_dir(&self.dir) else { return false };
        inside.all(|entry| entry.is_ok_and(|entry| self.points.contains(&entry.path())))
    }

    /// Once the mount points stand: the parent takes no more files, unless it is to.
    pub(super) fn seal(&self) {
        if self.scratch == Scratch::Session {
            return;
        }
        let sealed = match self.parent {
            Parent::Tmpfs => {
                let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
                rustix::mount::mount_remount(&self.dir, flags, POINTS)
            }
            Parent::Folder => {
                self.permit(0o555);
                Ok(())
            }
            Parent::None => Ok(()),
        };
        if let Err(error) = sealed {
            complain(&format!("{} cannot be made read-only: {error}", self.dir.display()));
        }
    }

    /// Takes away all that was made here: dead mounts, the parent, directories. What cannot be taken away is named.
    pub(super) fn take_away(&mut self) {
        let mut gone = Vec::new();
        for point in &self.points {
            gone.push(table::clear(point).map(drop));
        }
        if matches!(self.parent, Parent::Tmpfs) {
            gone.push(table::take_away(&self.dir));
        }
        self.permit(0o755);
        for error in gone.into_iter().filter_map(Result::err) {
            complain(&format!("{error:#}"));
        }
        for dir in self.made.drain(..).rev() {
            // Those on the tmpfs went with it; one that somebody uses is left.
            let _ = std::fs::remove_dir(dir);
        }
    }
}

/// Whether a parent of ours stands at `dir`.
pub(super) fn is_ours(dir: &Path) -> std::io::Result<bool> {
    let ours = |mounted: &table::Mounted| mounted.kind == "tmpfs" && mounted.source == SOURCE;
    Ok(table::at(dir)?.last().is_some_and(ours))
}
