//! The history of a store with what the Anthropic dialect does not show: reasons. And changesets. spec/recursion.md 7,
//! DESIGN 7.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::memory_stores::{encoded, store_address};
use crate::{Client, ClientError};

/// Most versions of a page.
const PAGE: usize = 100;

/// A version as the Recursion dialect shows it, its ids as UUIDs, without its text.
#[derive(Clone, Debug, Deserialize)]
#[expect(missing_docs, reason = "spec/recursion.md 4.3 says what each field is")]
pub struct Recorded {
    pub memory_version_id: String,
    pub memory_id: String,
    pub operation: String,
    pub author_kind: String,
    pub author_principal: Option<String>,
    pub author_session_id: Option<String>,
    pub rationale: Option<String>,
    /// Empty where a redaction removed it.
    pub path: String,
    pub created_at: String,
    pub redacted_at: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    memory_versions: Vec<Recorded>,
    next_cursor: Option<String>,
}

/// The calls; each fails with the server's refusal, or where there is no server.
#[expect(clippy::missing_errors_doc, reason = "all of them the same, as the line above says")]
impl Client {
    /// The versions of a store, newest first. `store` is a UUID.
    pub fn history(&self, store: &str) -> impl Iterator<Item = Result<Recorded, ClientError>> {
        let address =
            format!("/managed-agents/v1/memory_stores/{}/memory_versions?limit={PAGE}", encoded(store));
        let mut ready = Vec::new().into_iter();
        let mut next = Some(String::new());
        std::iter::from_fn(move || {
            loop {
                if let Some(version) = ready.next() {
                    return Some(Ok(version));
                }
                let address = format!("{address}{}", next.take()?);
                match self.get(&address).and_then(|answer| self.typed::<Page>(answer)) {
                    Ok(page) => {
                        next = page.next_cursor.map(|cursor| format!("&cursor={}", encoded(&cursor)));
                        ready = page.memory_versions.into_iter();
                    }
                    Err(error) => return Some(Err(error)),
                }
            }
        })
    }

    /// Makes changes of a store, in order, all or none of them. DESIGN 7 says what each looks like.
    pub fn changeset(
        &self,
        store: &str,
        reason: Option<&str>,
        changes: &[Value],
    ) -> Result<Value, ClientError> {
        let mut body = json!({"changes": changes});
        if let Some(reason) = reason {
            body["reason"] = reason.into();
        }
        self.post(&store_address(store, "/changesets"), &body)
    }
}
