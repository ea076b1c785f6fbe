//! `/v1/memory_stores/{id}/memories/search`. DESIGN 8.

use axum::body::Body;
use axum::response::Response;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stele_core::access::{Action, Resource};
use stele_core::path::PathPrefix;
use stele_core::refusal::Refusal;
use stele_core::search::{Position, Query};
use stele_core::searcher::{Question, SearchHit};
use stele_core::storage::At;
use stele_http::body;
use stele_http::cursor::{BadCursor, List};
use stele_http::reply::{at, bytes, json};

use crate::context::{Call, cursor_key, object, page_cursor};
use crate::error::ApiError;
use crate::id::Prefixed;

/// Most hits of a page, and how many if nothing is said.
pub(crate) const PAGE: (usize, usize) = (100, 20);

/// The same parameters in a body, for queries that are too long for an address.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchBody {
    /// What to look for.
    #[schemars(length(min = 1))]
    query: String,
    /// Most hits of the page.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
    /// The `next_page` of the page before.
    page: Option<String>,
    /// Only below this directory.
    path_prefix: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MemorySearchResult")]
pub(crate) struct HitView {
    memory_id: String,
    path: Box<str>,
    summary: String,
    /// The passage of the content that matches best: plain text.
    snippet: String,
    /// What was found in the snippet, in characters (Unicode scalar values) from its start.
    highlights: Vec<Highlight>,
    /// How well it matches; comparable within one answer only.
    score: f32,
    updated_at: String,
}

#[derive(Serialize, JsonSchema)]
struct Highlight {
    start: usize,
    end: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MemorySearchPage")]
pub(crate) struct SearchView {
    /// Best first, each memory once.
    data: Vec<HitView>,
    /// Memories found, on all pages.
    total_matches: usize,
    next_page: Option<String>,
}

impl HitView {
    fn of(hit: SearchHit) -> Self {
        let highlight = |range: &std::ops::Range<usize>| Highlight { start: range.start, end: range.end };
        Self {
            memory_id: hit.memory.spell(),
            path: hit.path,
            summary: hit.summary.as_str().to_owned(),
            highlights: hit.snippet.highlights.iter().map(highlight).collect(),
            snippet: hit.snippet.text,
            score: hit.score,
            updated_at: hit.updated_at.to_string(),
        }
    }
}

fn position_key(position: &Position) -> Vec<u8> {
    [&position.score_bits.to_be_bytes()[..], position.path.as_bytes()].concat()
}

fn position(key: Vec<u8>) -> Result<Position, BadCursor> {
    let (score, path) = key.split_first_chunk::<4>().ok_or(BadCursor)?;
    let path = std::str::from_utf8(path).map_err(|_| BadCursor)?;
    Ok(Position { score_bits: u32::from_be_bytes(*score), path: path.into() })
}

async fn search(call: &Call, wanted: SearchBody) -> Result<Response, ApiError> {
    let store = call.store()?;
    if wanted.query.trim().is_empty() {
        return Err(Refusal::shape("query", "must hold something to look for").into());
    }
    let limit = wanted.limit.unwrap_or(PAGE.1);
    if !(1..=PAGE.0).contains(&limit) {
        let text = format!("must be a whole number from 1 to {}", PAGE.0);
        return Err(Refusal::shape("limit", text).into());
    }
    let prefix = wanted.path_prefix.as_deref().map(PathPrefix::parse).transpose();
    let prefix = prefix.map_err(|error| Refusal::invalid("path_prefix", error))?;
    let below = prefix.as_ref().map_or("/", PathPrefix::as_str);
    let epoch = call.stele.installation().epoch;
    let list = List::new(&["anthropic search", &wanted.query, below]).of_store(store, epoch);
    let after = cursor_key(wanted.page.as_deref(), &list, position)?;
    let question = Question { query: Query::parse(&wanted.query), prefix, after, limit };
    let At { sequence, value: page } = call.stele.search(&call.caller, store, &question).await?;
    let view = SearchView {
        total_matches: page.total_matches,
        next_page: page_cursor(&list, page.next.is_some(), page.next.as_ref().map(position_key)),
        data: page.hits.into_iter().map(HitView::of).collect(),
    };
    Ok(at(sequence, json(bytes(&view))))
}

pub(crate) async fn by_address(call: Call) -> Result<Response, ApiError> {
    let text = |name: &str| call.query.get(name).map(str::to_owned);
    let wanted = SearchBody {
        query: text("query").unwrap_or_default(),
        limit: Some(call.query.number("limit", 1, PAGE.0, PAGE.1)?),
        page: text("page"),
        path_prefix: text("path_prefix"),
    };
    search(&call, wanted).await
}

pub(crate) async fn by_body(call: Call, body: Body) -> Result<Response, ApiError> {
    call.may(Resource::Memory, Action::Read)?;
    let body = body::read(body).await?;
    search(&call, object(&body)?).await
}
