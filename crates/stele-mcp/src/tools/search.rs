//! `search_memories`.

use rmcp::model::CallToolResult;
use serde_json::json;
use stele_client::{ClientError, Hits, Span};

use super::Call;
use super::browse::line;
use crate::answer::{Brought, failure, fits, result};
use crate::arguments::{LIMIT, PAGE, QUERY, USUAL};
use crate::door::{Ask, Door};

impl<D: Door> Call<'_, D> {
    async fn found(&self, prefix: &str, limit: usize, page: Option<&str>) -> Result<Hits, ClientError> {
        let mut body = json!({"query": self.arguments.the(&QUERY), "path_prefix": prefix, "limit": limit});
        if let Some(page) = page {
            body["page"] = page.into();
        }
        let answer = self.door.ask(Ask::Post(self.store.anthropic("/memories/search"), body)).await?;
        serde_json::from_value(answer)
            .map_err(|error| ClientError::Strange { url: "the server".into(), cause: error.to_string() })
    }

    /// A page is the server's cursor with the number of memories that were shown before it, to say how many are left.
    pub(super) async fn search(&self) -> Brought {
        if self.arguments.the(&QUERY).trim().is_empty() {
            return Err(
                "`query` is empty: give some words or a question, or use list_memories to see all.".into()
            );
        }
        let prefix = self.arguments.prefix()?;
        let page = self.arguments.text(&PAGE).map(|page| {
            let (before, cursor) = page.split_once('.')?;
            Some((before.parse::<usize>().ok()?, cursor))
        });
        let (before, cursor) = match page {
            None => (0, None),
            Some(Some((before, cursor))) => (before, Some(cursor)),
            Some(None) => return Err(no_page()),
        };
        let mut limit = self.arguments.number(&LIMIT).unwrap_or(USUAL.1 as usize);
        loop {
            let hits = match self.found(&prefix, limit, cursor).await {
                Ok(hits) => hits,
                Err(ClientError::Refused { status: 400, .. }) if cursor.is_some() => return Err(no_page()),
                Err(error) => return Err(failure(&error)),
            };
            if hits.data.is_empty() {
                let text =
                    self.nothing("Nothing matches.", "Try other or fewer words, or list_memories.").await?;
                let data = json!({"store": self.store.slug, "memories": [], "total": 0, "left": 0});
                return Ok(result(text, data));
            }
            let shown = self.shown(&hits, before);
            if fits(&shown) || limit == 1 {
                return Ok(shown);
            }
            limit = (hits.data.len() / 2).max(1);
        }
    }

    fn shown(&self, hits: &Hits, before: usize) -> CallToolResult {
        let mut text = String::new();
        let mut memories = Vec::with_capacity(hits.data.len());
        for hit in &hits.data {
            let colon = if hit.summary.is_empty() { "" } else { ": " };
            text += &format!("{}{colon}{}\n", hit.path, line(&hit.summary));
            for part in marked(&hit.snippet, &hit.highlights).trim().lines() {
                text += &format!("  > {part}\n");
            }
            memories.push(json!({
                "path": hit.path, "summary": hit.summary, "snippet": hit.snippet, "score": hit.score,
                "updated_at": hit.updated_at,
            }));
        }
        let through = before + hits.data.len();
        let left = hits.total_matches.saturating_sub(through);
        let (slug, total) = (&self.store.slug, hits.total_matches);
        let mut data = json!({"store": slug, "memories": memories, "total": total, "left": left});
        if let Some(cursor) = &hits.next_page {
            let page = format!("{through}.{cursor}");
            text += &format!("\n{left} left: search_memories again with the same query and page {page:?}");
            data["page"] = page.into();
        }
        result(text.trim_end(), data)
    }
}

fn no_page() -> String {
    "`page` is none of this search: repeat the query and path_prefix of the page that named it, or leave `page` out."
        .into()
}

/// The passage with what was found between `**`.
fn marked(text: &str, spans: &[Span]) -> String {
    let characters: Vec<char> = text.chars().collect();
    let (mut out, mut done) = (String::with_capacity(text.len() + 4 * spans.len()), 0);
    for span in spans {
        let (start, end) = (span.start.clamp(done, characters.len()), span.end.min(characters.len()));
        if start < end {
            out.extend(&characters[done..start]);
            out += "**";
            out.extend(&characters[start..end]);
            out += "**";
            done = end;
        }
    }
    out.extend(&characters[done..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_marked_in_characters() {
        let span = |start, end| Span { start, end };
        assert_eq!(marked("é axolotl!", &[span(2, 9)]), "é **axolotl**!");
        assert_eq!(marked("abc", &[span(0, 2), span(1, 9), span(7, 8)]), "**ab****c**");
        assert_eq!(marked("", &[span(0, 1)]), "");
    }
}
