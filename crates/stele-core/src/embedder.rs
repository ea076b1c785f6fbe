//! The port to an embedding model: dense vectors for search, where an operator names a model. DESIGN 8.
//!
//! Nothing waits for it but a search, and that not for long: where there is no vector, words alone rank.

use crate::storage::Answer;

/// An embedding model somewhere else.
pub trait Embedder: Send + Sync {
    /// Longest passage that is given to the model at once, in characters (Unicode scalar values).
    fn passage_chars(&self) -> usize;

    /// The vectors of passages of memories, one each and in order. May take its time.
    ///
    /// # Errors
    /// See [`EmbedError`].
    fn passages(&self, passages: Vec<String>) -> Answer<'_, Result<Vec<Vec<f32>>, EmbedError>>;

    /// The vector of a query, comparable with those of passages. It comes within a fraction of a second or not at
    /// all: somebody waits for it.
    ///
    /// # Errors
    /// See [`EmbedError`].
    fn query(&self, query: String) -> Answer<'_, Result<Vec<f32>, EmbedError>>;
}

/// Why there is no vector, as far as a caller can act on it. What exactly happened is the adapter's to log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EmbedError {
    /// Out of reach, too slow, resting, or its answer made no sense: perhaps later.
    #[error("the embedding model did not answer")]
    Unavailable,
    /// The model does not take one of these texts, whenever it is asked.
    #[error("the embedding model refused a text")]
    Refused,
}
