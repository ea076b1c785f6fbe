//! `stele tree`.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Session, resolve};
use crate::cli::Tree as Args;
use crate::failure::{Class, fail};
use crate::output::{cell, count, print, print_json};

/// A directory: names with what is in them, or nothing for a memory.
#[derive(Default)]
struct Directory(BTreeMap<String, Option<Directory>>);

impl Directory {
    fn add(&mut self, path: &str) {
        match path.split_once('/') {
            None => drop(self.0.insert(path.into(), None)),
            Some((name, rest)) => {
                let below = self.0.entry(name.into()).or_default();
                below.get_or_insert_with(Self::default).add(rest);
            }
        }
    }

    fn lines(&self, indent: &str, lines: &mut Vec<String>) {
        for (n, (name, below)) in self.0.iter().enumerate() {
            let last = n + 1 == self.0.len();
            let slash = if below.is_some() { "/" } else { "" };
            lines.push(format!("{indent}{}{}{slash}", if last { "└── " } else { "├── " }, cell(name)));
            if let Some(below) = below {
                below.lines(&format!("{indent}{}", if last { "    " } else { "│   " }), lines);
            }
        }
    }
}

pub(crate) fn tree(session: &Session, args: Args) -> anyhow::Result<()> {
    let store = resolve::store(&session.client, &args.place.store)?;
    let prefix = resolve::prefix(&args.place);
    let memories = session.client.memories(&store.id, &prefix).collect::<Result<Vec<_>, _>>()?;
    if memories.is_empty() && prefix != "/" {
        return Err(fail(Class::NotFound, format!("there is no directory {prefix} in {}", store.name)));
    }
    if session.json {
        return print_json(&json!({"data": memories}));
    }
    let mut root = Directory::default();
    for memory in &memories {
        root.add(memory.path.strip_prefix(&prefix).unwrap_or(&memory.path));
    }
    let mut lines = vec![format!("{}:{}", cell(&store.name), cell(&prefix))];
    root.lines("", &mut lines);
    lines.push(count(memories.len(), "memory", "memories"));
    lines.iter().try_for_each(|line| print(line))
}
