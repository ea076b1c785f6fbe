//! Changes sent as changesets, each all or nothing and small enough for one request.

use serde_json::{Value, json};
use stele_core::changeset::MAX_CHANGES;

/// Most bytes of contents of one slice. Half of what a changeset may have: written as JSON they grow, to six times
/// their size at worst, and a request may have 32 MiB.
const MOST_BYTES: usize = 4 * 1024 * 1024;

/// One change on its way: what the route takes, but for the content, which is read when it is sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change<S> {
    pub(super) body: Value,
    /// Where its content comes from and how many bytes that has.
    pub(super) content: Option<(S, usize)>,
}

impl<S> Change<S> {
    pub(super) fn create(path: &str, summary: Option<&str>, content: (S, usize)) -> Self {
        let mut body = json!({"op": "create", "path": path});
        if let Some(summary) = summary.filter(|summary| !summary.is_empty()) {
            body["summary"] = summary.into();
        }
        Self { body, content: Some(content) }
    }

    pub(super) fn update(
        path: &str,
        expected: &str,
        summary: Option<&str>,
        content: Option<(S, usize)>,
    ) -> Self {
        let mut body = json!({"op": "update", "path": path, "expected_content_sha256": expected});
        if let Some(summary) = summary {
            body["summary"] = summary.into();
        }
        Self { body, content }
    }

    pub(super) fn moved(mut self, to: &str) -> Self {
        self.body["new_path"] = to.into();
        self
    }

    pub(super) fn delete(path: &str, expected: &str) -> Self {
        let body = json!({"op": "delete", "path": path, "expected_content_sha256": expected});
        Self { body, content: None }
    }

    /// As the route takes it.
    pub(super) fn with_content(&self, content: Option<String>) -> Value {
        let mut body = self.body.clone();
        if let Some(content) = content {
            body["content"] = content.into();
        }
        body
    }
}

/// The changes in their order, cut into pieces that one request each can carry. The cuts depend on nothing else.
pub(super) fn cut<S>(changes: &[Change<S>]) -> Vec<&[Change<S>]> {
    let mut slices = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (at, change) in changes.iter().enumerate() {
        let size = change.content.as_ref().map_or(0, |(_, size)| *size);
        if at > from && (at - from == MAX_CHANGES || bytes + size > MOST_BYTES) {
            slices.push(&changes[from..at]);
            (from, bytes) = (at, 0);
        }
        bytes += size;
    }
    if from < changes.len() {
        slices.push(&changes[from..]);
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_has_at_most_so_many_changes_and_bytes_and_nothing_is_lost() {
        let creates = |sizes: &[usize]| {
            let changes =
                sizes.iter().enumerate().map(|(n, size)| Change::create(&format!("/{n}"), None, ((), *size)));
            changes.collect::<Vec<_>>()
        };
        let lengths =
            |sizes: &[usize]| cut(&creates(sizes)).iter().map(|slice| slice.len()).collect::<Vec<_>>();
        assert_eq!(lengths(&[]), [] as [usize; 0]);
        assert_eq!(lengths(&[1; 2_500]), [1_000, 1_000, 500]);
        assert_eq!(lengths(&[MOST_BYTES, 1, MOST_BYTES - 1, 1]), [1, 2, 1]);
        let many = creates(&[1_000_000; 10]);
        assert_eq!(cut(&many).concat(), many);
    }
}
