//! Names of files that live on one machine only: what editors, desktops and programs make and remove by themselves.
//! The table of the mount in `cases/README.md`.

/// What kind of scratch file a name makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scratch {
    /// An editor's or a desktop's own: never becomes a memory.
    Litter,
    /// A temporary file of somebody's: becomes a memory if it is left with a text in it.
    Temporary,
}

/// How a file comes to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// Made with O_EXCL and mode 0600, as `mkstemp` does.
    Exclusively,
    /// In any other way.
    Plainly,
}

/// The kind of scratch file that a name makes; `None` where the file is to be a memory.
pub fn scratch(name: &str, made: Made) -> Option<Scratch> {
    if litter(name) {
        return Some(Scratch::Litter);
    }
    let plain = name.ends_with(".tmp") || name.contains(".tmp.") && !name.ends_with(".tmp.");
    let exclusive = made == Made::Exclusively && exclusively_made(name);
    (plain || exclusive).then_some(Scratch::Temporary)
}

fn litter(name: &str) -> bool {
    let swap = || {
        let (stem, end) = name.split_at_checked(name.len().saturating_sub(4)).unwrap_or(("", ""));
        let mut end = end.chars();
        stem.starts_with('.') && end.next() == Some('.') && end.next() == Some('s') && end.next() == Some('w')
    };
    let prefixes = [".#", ".goutputstream-", ".nfs", ".fuse_hidden", "._", ".tmp-"];
    matches!(name, "4913" | ".DS_Store" | "Thumbs.db" | "desktop.ini")
        || prefixes.iter().any(|prefix| name.starts_with(prefix))
        || name.ends_with('~')
        || name.len() > 1 && name.starts_with('#') && name.ends_with('#')
        || name.starts_with(".fs-") && name.ends_with(".tmp")
        || name.starts_with(".~lock.") && name.ends_with('#')
        || swap()
}

/// Names of `mkstemp` and its like: `sed??????`, `XX??????`, `tmp????????`, `.name.XXXXXX`.
fn exclusively_made(name: &str) -> bool {
    let behind = |prefix: &str, count: usize| {
        name.strip_prefix(prefix).is_some_and(|rest| rest.chars().count() == count)
    };
    let suffixed = || {
        let (stem, end) = name.strip_prefix('.').and_then(|rest| rest.rsplit_once('.')).unwrap_or(("", ""));
        !stem.is_empty() && end.len() == 6 && end.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    behind("sed", 6) || behind("XX", 6) || behind("tmp", 8) || suffixed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_names_are_those_of_the_table_and_no_others() {
        let litter = [
            ".plan.md.swp",
            ".plan.md.swo",
            ".a.swx",
            "plan.md~",
            "4913",
            ".#plan.md",
            "#plan.md#",
            ".fs-ab12.tmp",
            ".tmp-9",
            ".goutputstream-QX12",
            ".~lock.plan.odt#",
            ".nfs0001",
            ".fuse_hidden0001",
            ".DS_Store",
            "._plan.md",
            "Thumbs.db",
            "desktop.ini",
        ];
        for name in litter {
            assert_eq!(scratch(name, Made::Plainly), Some(Scratch::Litter), "{name}");
        }
        for name in ["notes.tmp", "notes.md.tmp.1234.5678", ".x.tmp"] {
            assert_eq!(scratch(name, Made::Plainly), Some(Scratch::Temporary), "{name}");
        }
        for name in ["sedAbC123", "XXa1b2c3", "tmpab12cd34", ".plan.md.Ab12Cd"] {
            assert_eq!(scratch(name, Made::Exclusively), Some(Scratch::Temporary), "{name}");
            assert_eq!(scratch(name, Made::Plainly), None, "{name}");
        }
        for name in [
            "plan.md",
            ".env.example",
            ".editorconfig",
            "sediment",
            "tmpfile",
            ".rules",
            "swp",
            "a.swp",
            "#",
            "tmp.md",
            "a.tmp.",
            "4913.md",
        ] {
            assert_eq!(scratch(name, Made::Exclusively), None, "{name}");
        }
    }
}
