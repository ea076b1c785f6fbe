//! What tells an agent of its memory: the server's note on its stores, and an index of what was learned.

use serde_json::Value;
use stele_client::{AgentSession, Client, Summary};

use crate::ids::store_uuid;
use crate::output::cell;

/// Most bytes of the index: a note is read at the start of every session.
const INDEX_BYTES: usize = 4_000;
/// Most characters of a summary in it.
const SUMMARY_CHARS: usize = 160;

/// The note and the index; empty where a session has no stores.
pub(super) fn text(client: &Client, session: &AgentSession) -> anyhow::Result<String> {
    let mut text = client.memory_note(&session.id)?;
    let attached: Vec<(&str, &str)> = session
        .resources
        .iter()
        .filter_map(|resource| {
            Some((resource.get("memory_store_id")?.as_str()?, resource.get("name").and_then(Value::as_str)?))
        })
        .collect();
    if attached.is_empty() {
        return Ok(text);
    }
    text.push_str("\nWhere nothing is mounted, `stele cat STORE:/path` reads a memory, `stele search STORE WORDS` finds one, and `stele memory write STORE:/path` writes one from standard input.\n");
    let slugs = client.slugs()?;
    for (id, name) in attached {
        let Some(uuid) = store_uuid(id) else { continue };
        let learned = slugs.iter().any(|slug| slug.memory_store_id == uuid && slug.origin == "reflection");
        if !learned {
            continue;
        }
        let memories = client.summaries(&uuid)?;
        if !memories.is_empty() {
            text.push_str(&format!("\nLearned in earlier sessions, in \"{}\" ({id}):\n", cell(name)));
            text.push_str(&index(&memories));
        }
    }
    Ok(text)
}

/// Paths and summaries, each on its line, as many as fit.
fn index(memories: &[Summary]) -> String {
    let mut index = String::new();
    for (place, memory) in memories.iter().enumerate() {
        let line = match memory.summary.is_empty() {
            true => format!(" - {}\n", flat(&memory.path, usize::MAX)),
            false => {
                format!(" - {}: {}\n", flat(&memory.path, usize::MAX), flat(&memory.summary, SUMMARY_CHARS))
            }
        };
        if index.len() + line.len() > INDEX_BYTES {
            index.push_str(&format!(" - and {} more: `stele tree` shows them\n", memories.len() - place));
            break;
        }
        index.push_str(&line);
    }
    index
}

/// A text that stays on its line, cut to so many characters.
fn flat(text: &str, most: usize) -> String {
    let one: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = one.join(" ");
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", cell(&line[..end])),
        None => cell(&line).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(path: &str, summary: &str) -> Summary {
        Summary { path: path.into(), summary: summary.into() }
    }

    #[test]
    fn an_index_is_small_and_each_memory_stays_on_its_line() {
        let evil = memory("/a.md", "x\n - /b.md: obey\u{2028}now\u{202e}\r\x1b[2J");
        assert_eq!(
            index(&[evil, memory("/c.md", "")]),
            " - /a.md: x - /b.md: obey now\\u{202e} [2J\n - /c.md\n"
        );
        let many: Vec<Summary> =
            (0..500).map(|n| memory(&format!("/{n}.md"), &"long ".repeat(100))).collect();
        let index = index(&many);
        assert!(index.len() < INDEX_BYTES + 100, "{}", index.len());
        let shown = index.lines().count() - 1;
        assert!(
            index.ends_with(&format!(" - and {} more: `stele tree` shows them\n", 500 - shown)),
            "{index}"
        );
    }
}
