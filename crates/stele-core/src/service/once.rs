//! Requests that are carried out once however often they are sent. spec/recursion.md 2.1.
//!
//! The receipt and what the request does are one commit. So a second request with the same key never finds a first one
//! half done: in this process it waits for it, in another it loses the commit and finds the receipt.

use std::fmt;

use crate::hash::Sha256;
use crate::id::WorkspaceId;
use crate::records::RecordWrite;
use crate::refusal::Refusal;
use crate::service::Stele;
use crate::service::kept::ATTEMPTS;
use crate::storage::{Error, StorageError};
use crate::work::document::{Document, Kept, made};
use crate::work::receipt::Receipt;
use crate::work::refusal::WorkRefusal;

/// Receipts that are forgotten at a time.
const STEP: usize = 500;

/// What makes a request one that is carried out once.
pub struct Once<T> {
    /// Its idempotency key.
    pub key: String,
    /// The hash of all that makes up the request: another one with the same key is a conflict.
    pub identity: Sha256,
    /// Writes down the answer.
    pub answer: Box<dyn Fn(&T) -> String + Send + Sync>,
}

impl<T> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Once").field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// What came of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered<T> {
    /// It was carried out now.
    Now(T),
    /// It was carried out before, and this was answered.
    Before(String),
}

impl Stele {
    /// Commits what `draft` would write, and with it the receipt; or finds the receipt of the same request.
    pub(super) async fn once<T, F, Fut>(
        &self,
        workspace: WorkspaceId,
        once: Option<Once<T>>,
        draft: F,
    ) -> Result<Answered<T>, Error>
    where
        F: Fn() -> Fut,
        Fut: Future<Output = Result<(T, Vec<RecordWrite>), Error>>,
    {
        let Some(once) = once else {
            let (drafted, writes) = draft().await?;
            self.commit_new(writes).await?;
            return Ok(Answered::Now(drafted));
        };
        let key = Receipt::id_of(&once.key);
        let _turn = self.turns.take(key).await;
        for _ in 0..ATTEMPTS {
            let now = self.clock.now();
            let before = self.find::<Receipt>(workspace, key).await?;
            if let Some(Kept { doc, .. }) = before.as_ref().filter(|kept| now < kept.doc.ends_at()) {
                if !doc.is_of(once.identity) {
                    return Err(Refusal::from(WorkRefusal::KeyOfAnotherRequest).into());
                }
                return Ok(Answered::Before(doc.answer.clone()));
            }
            let (drafted, mut writes) = draft().await?;
            let receipt = Receipt::new(key, once.identity, (once.answer)(&drafted), now);
            writes.push(match before {
                Some(outlived) => outlived.replaced_by(&receipt),
                None => made(workspace, &receipt),
            });
            if self.commit(writes).await? {
                return Ok(Answered::Now(drafted));
            }
        }
        Err(StorageError::Overloaded.into())
    }

    /// Forgets receipts that count no more.
    ///
    /// # Errors
    /// The storage's.
    pub async fn receipts_forget(&self) -> Result<(), StorageError> {
        for record in self.storage.record_due(Receipt::KIND, self.clock.now(), STEP).await? {
            // What conflicts was used anew.
            self.commit(vec![Kept::<Receipt>::of(&record)?.removed()]).await?;
        }
        Ok(())
    }
}
