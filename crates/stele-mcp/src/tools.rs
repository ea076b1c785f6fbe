//! The tools: what a model reads of each, and what each does. DESIGN 10.

mod browse;
mod history;
mod read;
mod search;
mod write;

use rmcp::model::{CallToolResult, JsonObject, Tool, ToolAnnotations};

use crate::answer::{Brought, mistake};
use crate::arguments::{self as a, Argument, Arguments};
use crate::door::Door;
use crate::scope::{Rights, Scope, Store};

/// One of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    List,
    Search,
    Read,
    Write,
    Edit,
    Rename,
    Delete,
    History,
}

/// What is said of a tool.
struct Definition {
    kind: Kind,
    name: &'static str,
    title: &'static str,
    about: &'static str,
    required: &'static [&'static Argument],
    optional: &'static [&'static Argument],
}

static TOOLS: [Definition; 8] = [
    Definition {
        kind: Kind::List,
        name: "list_memories",
        title: "List memories",
        about: "List the memories of a store by path, each with its summary and size.",
        required: &[],
        optional: &[&a::STORE, &a::PATH_PREFIX, &a::LIMIT, &a::PAGE],
    },
    Definition {
        kind: Kind::Search,
        name: "search_memories",
        title: "Search memories",
        about: "Find memories by what they say, best first, each with the passage that fits. Read the whole text with \
                read_memory.",
        required: &[&a::QUERY],
        optional: &[&a::STORE, &a::PATH_PREFIX, &a::LIMIT, &a::PAGE],
    },
    Definition {
        kind: Kind::Read,
        name: "read_memory",
        title: "Read a memory",
        about: "Read a memory whole, or only some of its lines.",
        required: &[&a::PATH],
        optional: &[&a::STORE, &a::START_LINE, &a::END_LINE],
    },
    Definition {
        kind: Kind::Write,
        name: "write_memory",
        title: "Write a memory",
        about: "Create a memory at a path, or replace the whole text of the one there. To change a part, use \
                edit_memory.",
        required: &[&a::PATH, &a::CONTENT],
        optional: &[&a::STORE, &a::SUMMARY, &a::EXPECTED],
    },
    Definition {
        kind: Kind::Edit,
        name: "edit_memory",
        title: "Edit a memory",
        about: "Replace one passage of a memory; the rest stays as it is.",
        required: &[&a::PATH, &a::OLD_STR, &a::NEW_STR],
        optional: &[&a::STORE, &a::SUMMARY, &a::EXPECTED],
    },
    Definition {
        kind: Kind::Rename,
        name: "rename_memory",
        title: "Rename a memory",
        about: "Give a memory another path. Nothing is overwritten.",
        required: &[&a::PATH, &a::NEW_PATH],
        optional: &[&a::STORE, &a::EXPECTED],
    },
    Definition {
        kind: Kind::Delete,
        name: "delete_memory",
        title: "Delete a memory",
        about: "Delete a memory. Its history stays.",
        required: &[&a::PATH],
        optional: &[&a::STORE, &a::EXPECTED],
    },
    Definition {
        kind: Kind::History,
        name: "memory_history",
        title: "History of a memory",
        about: "Show who changed a memory when, newest first; without a path, what changed in the store.",
        required: &[],
        optional: &[&a::STORE, &a::PATH, &a::LIMIT, &a::PAGE],
    },
];

impl Definition {
    /// Whether it is there for whoever may write so much: the history belongs to those who write.
    fn is_open(&self, rights: Rights) -> bool {
        match self.kind {
            Kind::List | Kind::Search | Kind::Read => true,
            Kind::Write => rights.create || rights.update,
            Kind::Edit | Kind::Rename => rights.update,
            Kind::Delete => rights.delete,
            Kind::History => rights != Rights::default(),
        }
    }

    fn reads(&self) -> bool {
        matches!(self.kind, Kind::List | Kind::Search | Kind::Read | Kind::History)
    }

    fn tool(&self) -> Tool {
        let reads = self.reads();
        let overwrites = matches!(self.kind, Kind::Write | Kind::Edit | Kind::Delete);
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(reads)
            .destructive(overwrites)
            .idempotent(reads || self.kind == Kind::Write)
            .open_world(false);
        Tool::new(self.name, self.about, a::schema(self.required, self.optional))
            .with_title(self.title)
            .with_annotations(hints)
    }
}

/// The tools for whoever may write so much.
pub(crate) fn list(rights: Rights) -> Vec<Tool> {
    TOOLS.iter().filter(|tool| tool.is_open(rights)).map(Definition::tool).collect()
}

/// A tool at work: its store and arguments, and the door to the server.
struct Call<'a, D> {
    door: &'a D,
    store: &'a Store,
    arguments: Arguments,
}

/// Uses a tool. Whatever goes wrong is a result too, which says what to do next.
pub(crate) async fn call(
    door: &impl Door,
    scope: impl Future<Output = Result<std::sync::Arc<Scope>, String>>,
    name: &str,
    sent: Option<JsonObject>,
) -> CallToolResult {
    carry_out(door, scope, name, sent).await.unwrap_or_else(mistake)
}

async fn carry_out(
    door: &impl Door,
    scope: impl Future<Output = Result<std::sync::Arc<Scope>, String>>,
    name: &str,
    sent: Option<JsonObject>,
) -> Brought {
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        return Err(format!("There is no such tool. The tools are {}.", names.join(", ")));
    };
    let arguments = Arguments::check(sent, tool.required, tool.optional)?;
    let scope = scope.await?;
    let store = scope.store(arguments.text(&a::STORE))?;
    if !tool.is_open(store.rights) && !tool.reads() {
        return Err(denied(store));
    }
    let call = Call { door, store, arguments };
    match tool.kind {
        Kind::List => call.list().await,
        Kind::Search => call.search().await,
        Kind::Read => call.read().await,
        Kind::Write => call.write().await,
        Kind::Edit => call.edit().await,
        Kind::Rename => call.rename().await,
        Kind::Delete => call.delete().await,
        Kind::History => call.history().await,
    }
}

fn denied(store: &Store) -> String {
    let slug = &store.slug;
    match store.rights.access() {
        "read_only" => format!("`{slug}` is read_only here: nothing in it can be changed."),
        _ => format!("The credential may not do that in `{slug}`."),
    }
}

#[cfg(test)]
mod tests;
