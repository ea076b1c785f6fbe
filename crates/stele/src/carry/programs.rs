//! `stele import claude-code` and `codex`: the memory files that these programs keep.
//!
//! Which files there are: docs/FOLDERS.md. A text stays as it is: `@path` in it is a word, and no file is taken for it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::folder_in::how;
use super::plan::{Wanted, carry_in};
use crate::cli::CarryIn;
use crate::commands::walk::{Listing, PlainFile, Unfit};
use crate::commands::{Session, resolve};
use crate::config::process_env;
use crate::failure::{Class, fail};

/// A program that keeps memory in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    ClaudeCode,
    Codex,
}

impl Program {
    /// The program of this name.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "claude-code" => Some(Self::ClaudeCode),
            "codex" => Some(Self::Codex),
            _ => None,
        }
    }

    /// What it calls the files with instructions, wherever in a project they lie.
    fn instructions(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode => &["CLAUDE.md", "CLAUDE.local.md"],
            Self::Codex => &["AGENTS.md", "AGENTS.override.md"],
        }
    }

    /// Directories of a project whose Markdown files are memory, and where they come to lie.
    fn of_project(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ClaudeCode => &[
                (".claude/rules", "rules"),
                (".claude/agent-memory", "agent-memory"),
                (".claude/agent-memory-local", "agent-memory-local"),
            ],
            Self::Codex => &[],
        }
    }

    /// The same of the person's own directory.
    fn of_person(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ClaudeCode => &[("rules", "user/rules"), ("agent-memory", "user/agent-memory")],
            Self::Codex => &[("memories", "memories")],
        }
    }

    /// The person's own directory: named by the program's variable, else in the home directory.
    fn home(self) -> Option<PathBuf> {
        let (variable, below) = match self {
            Self::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude"),
            Self::Codex => ("CODEX_HOME", ".codex"),
        };
        process_env(variable)
            .map(PathBuf::from)
            .or_else(|| Some(Path::new(&process_env("HOME")?).join(below)))
    }

    fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
        }
    }
}

pub(super) fn import(session: &Session, args: &CarryIn, program: Program) -> anyhow::Result<()> {
    let prefix = resolve::prefix(&args.store);
    let project = args.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let project = project.canonicalize().map_err(|error| {
        fail(Class::NotFound, format!("{} is no directory of a project: {error}", project.display()))
    })?;
    let found = Found::of(program, &project, program.home().as_deref(), args.max_files)?;
    let (mut wanted, mut unfit) = (Vec::new(), found.unfit);
    for (file, name) in found.files {
        match Wanted::read(file, &format!("{prefix}{name}")) {
            Ok(file) => wanted.push(file),
            Err(why) => unfit.push(why),
        }
    }
    wanted.sort_by(|a, b| a.path.cmp(&b.path));
    if wanted.is_empty() && unfit.is_empty() {
        let message = format!(
            "there are no memory files of {} for {}: docs/FOLDERS.md says where they are looked for",
            program.title(),
            project.display()
        );
        return Err(fail(Class::NotFound, message));
    }
    let store = resolve::store(&session.client, &args.store.store)?;
    let reason = format!("Imported from the memory files of {}.", program.title());
    carry_in(session, (&store, &prefix), (&wanted, &unfit), how(args), &reason)
}

/// The memory files for one project, each with the path it gets.
#[derive(Default)]
struct Found {
    files: Vec<(PathBuf, String)>,
    unfit: Vec<Unfit>,
}

impl Found {
    fn of(program: Program, project: &Path, home: Option<&Path>, most: usize) -> anyhow::Result<Self> {
        let mut found = Self::default();
        found.project(program, project, most)?;
        for (dir, name) in program.of_project() {
            found.markdown(&project.join(dir), name, most)?;
        }
        let Some(home) = home else { return Ok(found) };
        for name in program.instructions() {
            found.file(home.join(name), format!("user/{name}"));
        }
        for (dir, name) in program.of_person() {
            found.markdown(&home.join(dir), name, most)?;
        }
        if program == Program::ClaudeCode {
            // What the program noted by itself about this project, which it names by its directory.
            found.markdown(
                &home.join("projects").join(project_name(project)).join("memory"),
                "memory",
                most,
            )?;
        }
        Ok(found)
    }

    /// Instructions in the project and below it, but not in what other tools keep there.
    fn project(&mut self, program: Program, project: &Path, most: usize) -> anyhow::Result<()> {
        let names: BTreeSet<&str> = program.instructions().iter().copied().collect();
        let mut waiting = vec![(project.to_owned(), String::new())];
        let mut seen = 0;
        while let Some((dir, prefix)) = waiting.pop() {
            seen += 1;
            if seen > most {
                let message = format!(
                    "the project has more than {most} directories: name a smaller one, or raise --max-files"
                );
                return Err(fail(Class::Refused, message));
            }
            let Ok(entries) = std::fs::read_dir(&dir) else { continue };
            for entry in entries.flatten() {
                let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                    continue;
                };
                if names.contains(name.as_str()) {
                    self.file(entry.path(), format!("{prefix}{name}"));
                } else if kind.is_dir() && walked(&name) {
                    waiting.push((entry.path(), format!("{prefix}{name}/")));
                }
            }
        }
        // Where the file at the top may lie as well.
        let hidden = project.join(".claude/CLAUDE.md");
        if program == Program::ClaudeCode {
            self.file(hidden, ".claude/CLAUDE.md".into());
        }
        Ok(())
    }

    /// The Markdown files below a directory, if it is there.
    fn markdown(&mut self, dir: &Path, name: &str, most: usize) -> anyhow::Result<()> {
        if !std::fs::symlink_metadata(dir).is_ok_and(|about| about.is_dir()) {
            return Ok(());
        }
        let Listing { files, unfit } = Listing::of(dir, most)?;
        let markdown = |file: &PlainFile| Path::new(&file.name).extension().is_some_and(|end| end == "md");
        let files = files.into_iter().filter(markdown);
        self.files.extend(files.map(|PlainFile { file, name: rest }| (file, format!("{name}/{rest}"))));
        self.unfit.extend(unfit);
        Ok(())
    }

    /// One file, if it is there.
    fn file(&mut self, file: PathBuf, name: String) {
        match std::fs::symlink_metadata(&file) {
            Ok(about) if about.is_file() => self.files.push((file, name)),
            Ok(about) if about.is_symlink() => {
                self.unfit.push(Unfit { file, why: "is a symbolic link".into() });
            }
            Ok(_) => self.unfit.push(Unfit { file, why: "is no plain file".into() }),
            Err(_) => {}
        }
    }
}

/// Whether instructions in a directory of that name can be a project's own.
fn walked(name: &str) -> bool {
    !name.starts_with('.') && !["node_modules", "target", "vendor", "__pycache__"].contains(&name)
}

/// What Claude Code calls a project: its directory, all but ASCII letters and digits as hyphens.
fn project_name(project: &Path) -> String {
    let text = project.to_string_lossy();
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(file: PathBuf) {
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
        std::fs::write(file, "x").expect("written");
    }

    fn names(found: &Found) -> Vec<&str> {
        let mut names: Vec<&str> = found.files.iter().map(|(_, name)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_files_of_claude_code_are_found_where_it_keeps_them() {
        let (dir, home) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let project = dir.path();
        for file in [
            "CLAUDE.md",
            "CLAUDE.local.md",
            ".claude/CLAUDE.md",
            "web/CLAUDE.md",
            "node_modules/x/CLAUDE.md",
            "README.md",
            ".claude/rules/api/style.md",
            ".claude/agent-memory/reviewer/MEMORY.md",
            ".claude/settings.json",
        ] {
            write(project.join(file));
        }
        let own = home.path().join("projects").join(project_name(project));
        for file in [own.join("memory/MEMORY.md"), own.join("memory/debugging.md"), own.join("a.jsonl")] {
            write(file);
        }
        write(home.path().join("projects/other/memory/MEMORY.md"));
        write(home.path().join("CLAUDE.md"));
        write(home.path().join("rules/mine.md"));
        let found = Found::of(Program::ClaudeCode, project, Some(home.path()), 100).expect("found");
        assert_eq!(
            names(&found),
            [
                ".claude/CLAUDE.md",
                "CLAUDE.local.md",
                "CLAUDE.md",
                "agent-memory/reviewer/MEMORY.md",
                "memory/MEMORY.md",
                "memory/debugging.md",
                "rules/api/style.md",
                "user/CLAUDE.md",
                "user/rules/mine.md",
                "web/CLAUDE.md",
            ]
        );
    }

    #[test]
    fn the_files_of_codex_are_found_where_it_keeps_them() {
        let (dir, home) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        for file in ["AGENTS.md", "docs/AGENTS.override.md", ".git/AGENTS.md"] {
            write(dir.path().join(file));
        }
        for file in [
            "AGENTS.md",
            "memories/MEMORY.md",
            "memories/rollout_summaries/one.md",
            "config.toml",
            "auth.json",
        ] {
            write(home.path().join(file));
        }
        let found = Found::of(Program::Codex, dir.path(), Some(home.path()), 100).expect("found");
        assert_eq!(
            names(&found),
            [
                "AGENTS.md",
                "docs/AGENTS.override.md",
                "memories/MEMORY.md",
                "memories/rollout_summaries/one.md",
                "user/AGENTS.md"
            ]
        );
    }

    #[test]
    fn a_project_is_named_as_claude_code_names_it() {
        assert_eq!(project_name(Path::new("/home/you/my.app_2")), "-home-you-my-app-2");
    }
}
