//! Arguments of what works on agents, environments and recorded sessions.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

use crate::transcript::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Make an agent.
    Create {
        /// Its name.
        name: String,
        /// The model that it runs on; names are not judged
        #[arg(long, default_value = "unknown")]
        model: String,
        /// What it is for.
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        /// Give it no learned store
        #[arg(long)]
        no_learned: bool,
    },
    /// List the agents, newest first.
    List,
    /// Show one agent.
    Show {
        /// Its name or id.
        agent: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Environment {
    /// Make an environment.
    Create {
        /// Its name.
        name: String,
        /// Its sessions are done by workers of your own, from the work queue
        #[arg(long)]
        self_hosted: bool,
    },
    /// List the environments, newest first.
    List,
    /// Make a key for the workers of an environment; it is shown once.
    Key {
        /// Its name or id.
        environment: String,
        /// A name to know the key by
        #[arg(long)]
        name: Option<String>,
    },
}

/// A store to attach: `STORE`, `STORE:ro` or `STORE:rw`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attach {
    pub(crate) store: String,
    pub(crate) read_only: bool,
}

impl FromStr for Attach {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (store, read_only) = match text.rsplit_once(':') {
            Some((store, "ro")) => (store, true),
            Some((store, "rw")) => (store, false),
            _ => (text, false),
        };
        if store.is_empty() {
            return Err("a store comes first, as in STORE:ro");
        }
        Ok(Self { store: store.into(), read_only })
    }
}

/// What a session is made of. What is not there yet is made.
#[derive(Clone, Debug, Args)]
pub(crate) struct Made {
    /// The agent, by name or id; one of that name is made where there is none
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// The environment, by name or id; one of that name is made where there is none
    #[arg(long, value_name = "ENVIRONMENT", default_value = "recorded")]
    pub(crate) environment: String,
    /// Attach a store, read-only with :ro; may be repeated
    #[arg(long, value_name = "STORE[:ro|rw]")]
    pub(crate) store: Vec<Attach>,
    /// What the session is about
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Metadata as KEY=VALUE; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) metadata: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RecordedSession {
    /// Start a session of an agent that runs elsewhere, and print its id.
    Start {
        #[command(flatten)]
        made: Made,
        /// Print the memory note too, with an index of what was learned
        #[arg(long)]
        note: bool,
    },
    /// Print what tells an agent of its memory: the note on its stores, and an index of what was learned.
    Note {
        /// The session's id.
        session: String,
    },
    /// Send events: one a line as for `import jsonl`, or one message.
    Send {
        /// The session's id.
        session: String,
        /// The events [default: standard input]
        #[arg(conflicts_with_all = ["user", "assistant"])]
        file: Option<PathBuf>,
        /// Send this as a message of a person instead
        #[arg(long, value_name = "TEXT")]
        user: Option<String>,
        /// Send this as a message of the agent instead
        #[arg(long, value_name = "TEXT")]
        assistant: Option<String>,
    },
    /// End a session; nothing can be sent to it any more.
    Finish {
        /// The session's id.
        session: String,
        /// It failed, for this reason
        #[arg(long, value_name = "WHY")]
        failed: Option<String>,
    },
    /// List sessions, newest first.
    List {
        /// Of this agent, by name or id
        #[arg(long)]
        agent: Option<String>,
        /// With this status: idle, running, rescheduling or terminated
        #[arg(long)]
        status: Option<String>,
        /// Archived ones too
        #[arg(long)]
        archived: bool,
        /// How many at most
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Show a session and its newest events.
    Show {
        /// The session's id.
        session: String,
        /// How many events at most
        #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
        events: usize,
    },
    /// Make a session of a transcript, or add what is new in it to the one that was made of it.
    Import(Import),
    /// What the hooks of an agent's program call; it reads their JSON from standard input.
    Hook {
        /// The program.
        #[arg(value_enum)]
        program: Program,
        /// The moment.
        #[arg(value_enum)]
        moment: Moment,
        #[command(flatten)]
        made: Made,
        /// At its end, end the session for good; when it is resumed, another one goes on
        #[arg(long)]
        finish: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Whose transcript it is.
    #[arg(value_enum)]
    pub(crate) format: Format,
    /// The transcript.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) made: Made,
    /// By what it is recognised [default: its own id, else where it lies and its first line]
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// End the session for good
    #[arg(long)]
    pub(crate) finish: bool,
    /// Import although it was written by a version that is not known
    #[arg(long)]
    pub(crate) any_version: bool,
    /// Only show what would be sent
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
}

/// A program with hooks.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Program {
    /// Claude Code.
    ClaudeCode,
}

/// When a hook is called.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Moment {
    /// `SessionStart`: prints the memory note.
    Start,
    /// `SessionEnd`: imports the transcript.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_attached_for_writing_unless_it_says_otherwise() {
        let read = |text: &str| text.parse::<Attach>().map(|attach| (attach.store, attach.read_only));
        assert_eq!(read("notes"), Ok(("notes".into(), false)));
        assert_eq!(read("notes:rw"), Ok(("notes".into(), false)));
        assert_eq!(read("My: Notes:ro"), Ok(("My: Notes".into(), true)));
        assert_eq!(read("a:b"), Ok(("a:b".into(), false)));
        assert!(read(":ro").is_err() && read("").is_err());
    }
}
