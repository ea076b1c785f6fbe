//! Whole stores as files, streamed both ways. docs/EXPORT.md.

use std::io::{Read, Write};
use std::time::Duration;

use serde_json::Value;
use ureq::SendBody;
use ureq::http::{Request, Response};

use crate::memory_stores::store_address;
use crate::{Client, ClientError, WIRE, beta};

/// Longest time without a byte of an answer, and for its beginning: a large archive is looked through before it.
const SILENCE: Duration = Duration::from_secs(60 * 60);
/// Most bytes of an answer to an upload: a line for each of its files.
const ANSWER_BYTES: u64 = 256 * 1024 * 1024;

/// The calls; each fails with the server's refusal, or where there is no server.
#[expect(clippy::missing_errors_doc, reason = "all of them the same, as the line above says")]
impl Client {
    /// Writes a store as `archive` or `markdown` to `out`.
    pub fn export(&self, store: &str, format: &str, out: &mut dyn Write) -> Result<(), ClientError> {
        let path = store_address(store, &format!("/export?format={format}"));
        let mut answer = self.send("GET", &path, SendBody::none())?;
        if !answer.status().is_success() {
            return Err(self.read(answer).err().unwrap_or_else(|| self.strange("it refuses without a word")));
        }
        let mut body = answer.body_mut().with_config().limit(u64::MAX).reader();
        // Writing to a file of our own hardly fails; a connection that is cut does.
        std::io::copy(&mut body, out)
            .map_err(|error| self.strange(&format!("the export broke off: {error}")))?;
        Ok(())
    }

    /// Sends files that are to become memories of a store; answers with what happened to each.
    pub fn import(
        &self,
        store: &str,
        (dry_run, on_conflict): (bool, &str),
        archive: &mut dyn Read,
    ) -> Result<Value, ClientError> {
        let query = format!("/import?dry_run={dry_run}&on_conflict={on_conflict}");
        let answer = self.send("POST", &store_address(store, &query), SendBody::from_reader(archive))?;
        self.read(answer)
    }

    /// Sends the archive of a store that is to be put back with its ids; answers with the store.
    pub fn store_restore(&self, archive: &mut dyn Read) -> Result<Value, ClientError> {
        let answer = self.send("POST", "/stele/v1/memory_stores/import", SendBody::from_reader(archive))?;
        self.read(answer)
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        body: SendBody<'_>,
    ) -> Result<Response<ureq::Body>, ClientError> {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {}", self.key))
            .header("anthropic-beta", beta(path))
            .header("anthropic-version", WIRE)
            .header("content-type", "application/zstd")
            .body(body)
            .map_err(|error| self.strange(&error.to_string()))?;
        // However long it takes as long as it goes on.
        let request = self
            .agent
            .configure_request(request)
            .timeout_global(None)
            .timeout_recv_response(Some(SILENCE))
            .build();
        self.agent.run(request).map_err(|error| match error {
            ureq::Error::Timeout(_) => ClientError::Slow { url: self.base.clone() },
            cause => ClientError::Unreachable { url: self.base.clone(), cause: cause.to_string() },
        })
    }

    fn read(&self, mut answer: Response<ureq::Body>) -> Result<Value, ClientError> {
        let status = answer.status();
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES).read_to_string();
        let text = text.map_err(|error| self.strange(&error.to_string()))?;
        let body: Value =
            serde_json::from_str(&text).map_err(|_| self.strange(&format!("status {status}, no JSON")))?;
        if status.is_success() { Ok(body) } else { Err(ClientError::refused(status.as_u16(), &body)) }
    }

    fn strange(&self, cause: &str) -> ClientError {
        ClientError::Strange { url: self.base.clone(), cause: cause.to_owned() }
    }
}
