//! Names: what a memory's path may be, and which files are scratch ([`stele_core::scratch`]).

use fuser::Errno;
use stele_core::path::{MemoryPath, PathError};

pub(crate) use stele_core::scratch::{Made, Scratch, scratch};

/// The path that a file or a directory would have.
///
/// # Errors
/// Why no memory can be there: ENAMETOOLONG, EINVAL, or EPERM for what belongs to git.
pub(crate) fn path(directory: &str, name: &str) -> Result<String, Errno> {
    if name == ".git" {
        return Err(Errno::EPERM);
    }
    let path = if directory == "/" { format!("/{name}") } else { format!("{directory}/{name}") };
    match MemoryPath::parse(&path) {
        Ok(_) => Ok(path),
        Err(error) => Err(errno(error)),
    }
}

fn errno(error: PathError) -> Errno {
    match error {
        PathError::TooLong(_) | PathError::TooDeep(_) => Errno::ENAMETOOLONG,
        PathError::NotAbsolute
        | PathError::EmptySegment
        | PathError::DotSegment
        | PathError::ForbiddenCharacter(_)
        | PathError::NotNfc
        | PathError::NotADirectory => Errno::EINVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_memory_can_be_called_says_why() {
        let no = |directory: &str, name: &str| path(directory, name).expect_err(name).code();
        assert_eq!(no("/", ".git"), Errno::EPERM.code());
        for name in ["a\u{1}b", "a\u{200b}b", "a\u{2028}b", "cafe\u{301}.md"] {
            assert_eq!(no("/", name), Errno::EINVAL.code(), "{name:?}");
        }
        assert_eq!(no("/", &"n".repeat(1024)), Errno::ENAMETOOLONG.code());
        assert_eq!(no(&"/d".repeat(20), "x"), Errno::ENAMETOOLONG.code());
        assert_eq!(path("/d", "caf\u{e9}.md").expect("a path"), "/d/caf\u{e9}.md");
        assert_eq!(path("/", &"n".repeat(1023)).expect("a path").len(), 1024);
    }
}
