//! Taking files into a store that is there: what happens to each, judged before the first change. DESIGN 7.

use std::collections::BTreeMap;
use std::fmt;

use crate::command::{Command, Expected};
use crate::hash::Sha256;
use crate::model::Memory;
use crate::path::MemoryPath;
use crate::text::{Content, Summary};

/// Most problems that are told one by one.
const SHOWN: usize = 100;
/// How many of them a message names.
const NAMED: usize = 3;

/// What is wrong with one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which, as far as it can be shown.
    pub path: String,
    /// What is wrong with it.
    pub what: String,
}

/// Why files are not imported: nothing was changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfit {
    /// The first of the problems, at most 100.
    pub shown: Vec<Problem>,
    /// How many there are in all.
    pub count: usize,
}

impl Unfit {
    /// With one more problem.
    pub fn add(&mut self, path: impl Into<String>, what: impl fmt::Display) {
        self.count += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(Problem { path: path.into(), what: what.to_string() });
        }
    }

    /// The refusal for this problem alone.
    pub fn one(path: impl Into<String>, what: impl fmt::Display) -> Self {
        let mut unfit = Self::default();
        unfit.add(path, what);
        unfit
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl std::error::Error for Unfit {}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(f, "nothing was imported: ")?,
            count => write!(f, "nothing was imported, for {count} problems: ")?,
        }
        for (at, problem) in self.shown.iter().take(NAMED).enumerate() {
            write!(f, "{}{}: {}", if at > 0 { "; " } else { "" }, problem.path, problem.what)?;
        }
        if self.count > NAMED { write!(f, "; and {} more", self.count - NAMED) } else { Ok(()) }
    }
}

/// What happens to a file whose path has a memory with another text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// Nothing is imported.
    #[default]
    Refuse,
    /// The memory stays as it is.
    Skip,
    /// The memory gets the file's text.
    Overwrite,
}

impl OnConflict {
    /// Its name on the wire.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "refuse" => Some(Self::Refuse),
            "skip" => Some(Self::Skip),
            "overwrite" => Some(Self::Overwrite),
            _ => None,
        }
    }
}

/// What happens to one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It becomes a memory.
    Create,
    /// It becomes the text of the memory that is there.
    Overwrite,
    /// The memory that is there stays.
    Skip,
    /// The memory that is there has this text.
    Same,
}

impl Fate {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Overwrite => "overwrite",
            Self::Skip => "skip",
            Self::Same => "unchanged",
        }
    }
}

/// A file to be imported.
#[derive(Clone, Debug)]
pub struct File {
    /// The path that it is to have.
    pub path: MemoryPath,
    /// Its summary; `None` where it says nothing of one.
    pub summary: Option<Summary>,
    /// Its content.
    pub content: Content,
}

/// The plan of an import: first every file is [`Plan::judge`]d, then [`Plan::check`] says whether it may begin, then each
/// file becomes its [`Plan::command`].
#[derive(Debug)]
pub struct Plan {
    /// Contents of what is there.
    there: BTreeMap<MemoryPath, Sha256>,
    on_conflict: OnConflict,
    fates: BTreeMap<MemoryPath, Fate>,
    creates: u64,
    /// Files that may change something, and bytes of their contents.
    changes: (usize, u64),
    problems: Unfit,
    most: u64,
}

impl Plan {
    /// A plan for a store with these memories, of which it may have `most`.
    pub fn new(there: Vec<Memory>, on_conflict: OnConflict, most: u64) -> Self {
        let there = there.into_iter().map(|memory| (memory.path, memory.content_sha256)).collect();
        let (fates, problems) = (BTreeMap::new(), Unfit::default());
        Self { there, on_conflict, fates, creates: 0, changes: (0, 0), problems, most }
    }

    /// A file that cannot be read.
    pub fn problem(&mut self, path: impl Into<String>, what: impl fmt::Display) {
        self.problems.add(path, what);
    }

    /// Judges a file.
    pub fn judge(&mut self, file: &File) {
        let path = &file.path;
        if let Some(twice) = overlapping(&self.fates, path) {
            let what = match twice == path {
                true => "it is there twice".to_owned(),
                false => format!("it and {twice} cannot both be memories: a path is a memory or a directory"),
            };
            return self.problems.add(path.as_str(), what);
        }
        let fate = match self.there.get(path) {
            Some(sha256) if *sha256 == file.content.sha256() => Fate::Same,
            Some(_) => match self.on_conflict {
                OnConflict::Refuse => {
                    return self
                        .problems
                        .add(path.as_str(), "the store has a memory with another text there");
                }
                OnConflict::Skip => Fate::Skip,
                OnConflict::Overwrite => Fate::Overwrite,
            },
            None => match overlapping(&self.there, path) {
                None => Fate::Create,
                Some(at) => {
                    let what = format!("the store has a memory at {at}: a path is a memory or a directory");
                    return self.problems.add(path.as_str(), what);
                }
            },
        };
        self.fates.insert(path.clone(), fate);
        if fate != Fate::Skip {
            self.changes.0 += 1;
            self.changes.1 += file.content.size_bytes();
        }
        self.creates += u64::from(fate == Fate::Create);
        if fate == Fate::Create && self.there.len() as u64 + self.creates > self.most {
            let what = format!("the store would hold more than {} memories, its most", self.most);
            self.problems.add(path.as_str(), what);
        }
    }

    /// Whether the import may begin.
    ///
    /// # Errors
    /// What is wrong with which files.
    pub fn check(&self) -> Result<(), Unfit> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.clone()) }
    }

    /// How many problems there are so far.
    pub fn problem_count(&self) -> usize {
        self.problems.count
    }

    /// Files that may change something, and bytes of their contents.
    pub fn changes(&self) -> (usize, u64) {
        self.changes
    }

    /// What happens to the files, by path.
    pub fn fates(&self) -> impl Iterator<Item = (&MemoryPath, Fate)> {
        self.fates.iter().map(|(path, fate)| (path, *fate))
    }

    /// What is to be done for a file that was judged; `None` for one that stays as it is.
    pub fn command(&self, file: File) -> Option<Command> {
        let File { path, summary, content } = file;
        match self.fates.get(&path)? {
            Fate::Create => {
                Some(Command::CreateMemory { path, summary: summary.unwrap_or_else(Summary::empty), content })
            }
            Fate::Overwrite => {
                let expected = Expected::Content(*self.there.get(&path)?);
                Some(Command::UpdateMemory {
                    memory: path.into(),
                    path: None,
                    summary,
                    content: Some(content),
                    expected,
                })
            }
            // Another summary is taken over only where texts are.
            Fate::Same if self.on_conflict == OnConflict::Overwrite && summary.is_some() => {
                let expected = Expected::Content(content.sha256());
                Some(Command::UpdateMemory {
                    memory: path.into(),
                    path: None,
                    summary,
                    content: None,
                    expected,
                })
            }
            Fate::Same | Fate::Skip => None,
        }
    }
}

/// The path in `paths` that cannot be beside `path`, if there is one: itself, one above or one below.
fn overlapping<'a, T>(paths: &'a BTreeMap<MemoryPath, T>, path: &MemoryPath) -> Option<&'a MemoryPath> {
    let above = path.ancestors().chain([path.as_str()]).map(|text| MemoryPath::from_trusted(text.to_owned()));
    let found = above.into_iter().find_map(|above| paths.get_key_value(&above).map(|(found, _)| found));
    found.or_else(|| {
        let directory = MemoryPath::from_trusted(path.as_directory());
        let below = paths.range(directory..).next().map(|(found, _)| found);
        below.filter(|found| found.overlaps(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{MemoryId, StoreId, VersionId};
    use crate::time::Timestamp;

    fn file(path: &str, text: &str) -> File {
        let content = Content::parse(text, 100).expect("legal");
        File { path: MemoryPath::parse(path).expect("legal"), summary: None, content }
    }

    fn there(path: &str, text: &str) -> Memory {
        Memory {
            id: MemoryId::from_bytes([1; 16]),
            store: StoreId::from_bytes([2; 16]),
            path: MemoryPath::parse(path).expect("legal"),
            version: VersionId::from_bytes([3; 16]),
            content_sha256: Sha256::of(text.as_bytes()),
            size_bytes: text.len() as u64,
            created_at: Timestamp::from_micros(1),
            updated_at: Timestamp::from_micros(1),
        }
    }

    fn plan(on_conflict: OnConflict, files: &[(&str, &str)]) -> Plan {
        let mut plan = Plan::new(vec![there("/a", "old"), there("/dir/b", "old")], on_conflict, 4);
        files.iter().for_each(|(path, text)| plan.judge(&file(path, text)));
        plan
    }

    fn problems(plan: &Plan) -> Vec<String> {
        let unfit = plan.check().expect_err("it is refused");
        unfit.shown.iter().map(|problem| format!("{}: {}", problem.path, problem.what)).collect()
    }

    #[test]
    fn a_file_over_another_text_meets_what_was_asked_for() {
        let files = [("/a", "new"), ("/dir/b", "old"), ("/c", "x")];
        assert_eq!(
            problems(&plan(OnConflict::Refuse, &files)),
            ["/a: the store has a memory with another text there"]
        );
        let fates = |on_conflict| {
            let plan = plan(on_conflict, &files);
            plan.check().expect("it may begin");
            plan.fates().map(|(_, fate)| fate).collect::<Vec<_>>()
        };
        assert_eq!(fates(OnConflict::Skip), [Fate::Skip, Fate::Create, Fate::Same]);
        assert_eq!(fates(OnConflict::Overwrite), [Fate::Overwrite, Fate::Create, Fate::Same]);
        let overwrites = plan(OnConflict::Overwrite, &files);
        let command = overwrites.command(file("/a", "new"));
        let expected = Expected::Content(Sha256::of(b"old"));
        assert!(matches!(command, Some(Command::UpdateMemory { expected: seen, .. }) if seen == expected));
        assert!(overwrites.command(file("/dir/b", "old")).is_none());
    }

    #[test]
    fn files_that_cannot_be_beside_each_other_are_named() {
        let files =
            [("/x", "1"), ("/x", "1"), ("/x/y", "1"), ("/a/below", "1"), ("/dir", "1"), ("/x-y", "1")];
        assert_eq!(
            problems(&plan(OnConflict::Overwrite, &files)),
            [
                "/x: it is there twice",
                "/x/y: it and /x cannot both be memories: a path is a memory or a directory",
                "/a/below: the store has a memory at /a: a path is a memory or a directory",
                "/dir: the store has a memory at /dir/b: a path is a memory or a directory",
            ]
        );
    }

    #[test]
    fn the_cap_counts_what_is_there() {
        assert!(plan(OnConflict::Skip, &[("/1", ""), ("/2", "")]).check().is_ok());
        assert_eq!(
            problems(&plan(OnConflict::Skip, &[("/1", ""), ("/2", ""), ("/3", "")])),
            ["/3: the store would hold more than 4 memories, its most"]
        );
    }

    #[test]
    fn a_message_names_a_few() {
        let mut unfit = Unfit::one("/1", "bad");
        assert_eq!(unfit.to_string(), "nothing was imported: /1: bad");
        (2..200).for_each(|n| unfit.add(format!("/{n}"), "bad"));
        assert_eq!((unfit.shown.len(), unfit.count), (100, 199));
        assert!(unfit.to_string().ends_with("/3: bad; and 196 more"), "{unfit}");
    }
}
