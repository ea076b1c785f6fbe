//! Names that stay on this side. The table of the mount in `cases/README.md`.

/// Where this folder's own things lie, in the folder.
pub(crate) const OWN: &str = ".stele-sync";
/// The official worker's marker. spec/anthropic.md 13.
const WORKER: &str = ".anthropic-memory-store";

/// Whether a name, of a file or directory, is never synced in either direction: ours, the worker's, git's.
pub(crate) fn is_reserved(name: &str) -> bool {
    [OWN, WORKER, ".git"].contains(&name)
}

/// Whether a file name is one that editors and desktops make and remove by themselves.
pub(crate) fn is_scratch(name: &str) -> bool {
    let starts = |prefix: &str| name.starts_with(prefix);
    let ends = |suffix: &str| name.ends_with(suffix);
    let swap = starts(".") && name.len() > 5 && name.is_char_boundary(name.len() - 4) && {
        let tail = &name.as_bytes()[name.len() - 4..];
        tail.starts_with(b".sw") && tail[3].is_ascii_alphanumeric()
    };
    swap || ends("~")
        || starts(".#")
        || (starts("#") && ends("#") && name.len() > 1)
        || starts(".tmp-")
        || (starts(".fs-") && ends(".tmp"))
        || starts(".goutputstream-")
        || (starts(".~lock.") && ends("#"))
        || starts(".nfs")
        || starts(".fuse_hidden")
        || starts("._")
        || ["4913", ".DS_Store", "Thumbs.db", "desktop.ini"].contains(&name)
}

/// Whether a file name is one that programs write to before they rename: it counts once it has lain still for a while.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.ends_with(".tmp") || name.contains(".tmp.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_editors_make_is_scratch_and_notes_are_not() {
        for name in [
            ".notes.md.swp",
            ".a.swx",
            "a.md~",
            "4913",
            ".#a.md",
            "#a.md#",
            ".tmp-1",
            ".fs-9.tmp",
            ".goutputstream-X",
            ".~lock.a.odt#",
            ".nfs0001",
            ".fuse_hidden1",
            ".DS_Store",
            "._a",
            "Thumbs.db",
            "desktop.ini",
        ] {
            assert!(is_scratch(name), "{name}");
        }
        for name in ["a.md", ".profile", "swp", ".swp", "#", "4913.md", "tmp", "a.tmp", ".envrc", "ä.swü"] {
            assert!(!is_scratch(name), "{name}");
        }
    }

    #[test]
    fn temporary_names_wait_and_reserved_ones_never_go() {
        assert!(is_temporary("a.tmp") && is_temporary("a.tmp.123") && !is_temporary("tmp.md"));
        assert!(is_reserved(".git") && is_reserved(OWN) && is_reserved(WORKER) && !is_reserved(".gitignore"));
    }
}
