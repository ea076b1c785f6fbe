//! Request ids: made once a request, in a header of every answer and in every error.

use std::fmt;

use stele_core::id::RequestId as Id;
use stele_core::service::Stele;

pub use stele_core::id::{base58, from_base58};

/// The id of one request: `req_01` and 22 base58 characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    /// A new one.
    pub fn mint(stele: &Stele) -> Self {
        let id = Id::mint(stele.now(), stele.random_bits());
        Self(format!("req_01{}", base58(*id.as_bytes())))
    }

    /// Its spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
