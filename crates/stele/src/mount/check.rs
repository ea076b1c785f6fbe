//! `stele mount --check`: whether this machine can mount, found out by doing so.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::FdFlags;
use rustix::mount::MountFlags;
use serde_json::json;

use super::table;
use crate::failure::{Class, fail};
use crate::output::{print, print_json};

const DEVICE: &str = "/dev/fuse";
const HELPER: &str = "fusermount3";
/// Major and minor number of `/dev/fuse`, in every Linux.
const NUMBER: (u32, u32) = (10, 229);

/// A thing that is looked at.
struct Finding {
    what: &'static str,
    /// What is there, or why it is not.
    found: Result<String, String>,
    /// What to do where it is missing.
    help: &'static str,
    /// Whether nothing can be mounted without it.
    needed: bool,
}

/// Whether the device is there and may be opened.
///
/// # Errors
/// Why not, in words.
pub(super) fn device() -> Result<(), String> {
    open_device().map(drop)
}

fn open_device() -> Result<OwnedFd, String> {
    let meta = std::fs::metadata(DEVICE).map_err(|error| format!("{DEVICE}: {error}"))?;
    let number = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    if !meta.file_type().is_char_device() || number != NUMBER {
        return Err(format!("{DEVICE} is not the device of FUSE"));
    }
    let opened = OpenOptions::new().read(true).write(true).open(DEVICE);
    Ok(opened.map_err(|error| format!("{DEVICE} cannot be opened: {error}"))?.into())
}

pub(super) fn check(as_json: bool) -> anyhow::Result<()> {
    let root = rustix::process::geteuid().is_root();
    let findings = [
        Finding {
            what: "/dev/fuse",
            found: open_device().map(|_| "there, and may be opened".into()),
            help: "modprobe fuse; in a container: --device /dev/fuse",
            needed: true,
        },
        Finding {
            what: "fusermount3",
            found: helper(),
            help: "apt-get install -y fuse3 (Debian, Ubuntu), dnf install -y fuse3 (Fedora), apk add fuse3 (Alpine)",
            needed: !root,
        },
        Finding {
            what: "user_allow_other",
            found: allow_other(root),
            help: "echo user_allow_other >> /etc/fuse.conf, as root; needed for --allow-other and --uid only",
            needed: false,
        },
        Finding {
            what: "mounting",
            found: try_mount(root),
            help: "in a container: --cap-add SYS_ADMIN --security-opt apparmor=unconfined; or use `stele sync`",
            needed: true,
        },
    ];
    let works = findings.iter().all(|finding| finding.found.is_ok() || !finding.needed);
    if as_json {
        let rows = findings.iter().map(|finding| {
            let (ok, detail) = match &finding.found {
                Ok(found) => (true, found),
                Err(why) => (false, why),
            };
            let help = (!ok).then_some(finding.help);
            json!({"check": finding.what, "ok": ok, "needed": finding.needed, "detail": detail, "help": help})
        });
        print_json(&json!({"data": rows.collect::<Vec<_>>(), "can_mount": works}))?;
    } else {
        for finding in &findings {
            print(&line(finding))?;
        }
        print(if works {
            "This machine can mount stores."
        } else {
            "This machine cannot mount stores as it is."
        })?;
    }
    if works { Ok(()) } else { Err(fail(Class::Other, "something that is needed is missing")) }
}

fn line(finding: &Finding) -> String {
    match &finding.found {
        Ok(found) => format!("ok       {}: {found}", finding.what),
        Err(why) => {
            let word = if finding.needed { "missing " } else { "optional" };
            format!("{word} {}: {why}\n         {}", finding.what, finding.help)
        }
    }
}

fn helper() -> Result<String, String> {
    let said = Command::new(HELPER).arg("--version").stdin(Stdio::null()).output();
    let said = said.map_err(|_| "it is not installed".to_owned())?;
    let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    if said.status.success() { Ok(text) } else { Err("it does not run".into()) }
}

fn allow_other(root: bool) -> Result<String, String> {
    if root {
        return Ok("not needed as root".into());
    }
    let text = std::fs::read_to_string("/etc/fuse.conf").unwrap_or_default();
    let says = text.lines().any(|line| line.trim() == "user_allow_other");
    if says { Ok("set".into()) } else { Err("not in /etc/fuse.conf".into()) }
}

/// Mounts a file system that nobody serves, and takes it away again.
fn try_mount(root: bool) -> Result<String, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mounted = if root { mount_directly(dir.path()) } else { mount_by_helper(dir.path()) };
    let _held = mounted?;
    table::take_away(dir.path()).map_err(|error| format!("{error:#}"))?;
    Ok("tried, and works".into())
}

fn mount_directly(dir: &Path) -> Result<OwnedFd, String> {
    let device = open_device()?;
    let data = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    let data = std::ffi::CString::new(data).map_err(|error| error.to_string())?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    match rustix::mount::mount("stele-check", dir, "fuse", flags, data.as_c_str()) {
        Ok(()) => Ok(device),
        Err(error) => Err(format!("the mount call is refused: {error}")),
    }
}

/// By fusermount3, which passes the device back over a socket that nobody reads.
fn mount_by_helper(dir: &Path) -> Result<OwnedFd, String> {
    let text = |error: std::io::Error| error.to_string();
    let (ours, theirs) = UnixStream::pair().map_err(text)?;
    rustix::io::fcntl_setfd(&theirs, FdFlags::empty()).map_err(|error| error.to_string())?;
    let mut helper = Command::new(HELPER);
    helper.args(["-o", "rw,nosuid,nodev,fsname=stele-check", "--"]).arg(dir).stdin(Stdio::null());
    let done = helper.env("_FUSE_COMMFD", theirs.as_raw_fd().to_string()).output();
    let done = done.map_err(|error| format!("{HELPER}: {error}"))?;
    if done.status.success() {
        Ok(ours.into())
    } else {
        Err(String::from_utf8_lossy(&done.stderr).trim().to_owned())
    }
}
