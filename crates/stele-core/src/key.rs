//! API keys: secrets shown once and kept as a hash. DESIGN 6, spec/recursion.md 2.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::access::{Caller, Grant, Principal};
use crate::clock::Random;
use crate::hash::Sha256;
use crate::id::{KeyId, WorkspaceId};
use crate::text::Name;
use crate::time::Timestamp;

const PREFIX: &str = "rma_";
/// What the secret of an environment's key begins with.
pub const ENVIRONMENT_PREFIX: &str = "ske_";
/// What the secret of a session's token begins with.
pub const SESSION_PREFIX: &str = "sts_";
/// What the secret of a console session begins with. It counts only as a cookie, never where a key is expected.
pub const CONSOLE_PREFIX: &str = "scs_";

/// The secret of a key: `rma_` (of an environment's key `ske_`, of a session's token `sts_`, of a console session
/// `scs_`) and 43 base64url characters (32 random bytes). Never stored, logged or printed by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new secret.
    pub fn generate(random: &dyn Random) -> Self {
        Self::with_prefix(PREFIX, random)
    }

    /// A new secret of another kind of credential.
    pub fn with_prefix(prefix: &str, random: &dyn Random) -> Self {
        let mut bytes = [0; 32];
        random.fill(&mut bytes);
        Self(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The secret itself, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What is stored of it. 256 random bits need no slow hash.
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(&self.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The SHA-256 of a secret: what is stored, and what a shown secret is looked up by.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct KeyHash(Sha256);

impl KeyHash {
    /// The hash of a text that somebody showed as a key.
    pub fn of(shown: &str) -> Self {
        Self(Sha256::of(shown.as_bytes()))
    }

    /// The hash that was stored as these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(Sha256::from_bytes(bytes))
    }

    /// The 32 bytes, as stored.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

/// One of Recursion's two contracts, which share some paths. spec/recursion.md 15.4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Contract {
    /// That of the public page and of SDK 0.0.131.
    #[default]
    V0_0,
    /// That of API 0.14.
    V0_14,
}

impl Contract {
    /// Its name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V0_0 => "recursion-0.0",
            Self::V0_14 => "recursion-0.14",
        }
    }

    /// The contract of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::V0_0, Self::V0_14].into_iter().find(|contract| contract.as_str() == name)
    }
}

/// A key as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id.
    pub id: KeyId,
    /// The workspace that it opens.
    pub workspace: WorkspaceId,
    /// Its name.
    pub name: Name,
    /// What it may do.
    pub grant: Grant,
    /// Which of Recursion's contracts its holder speaks on shared paths.
    pub contract: Contract,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops working by itself.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

impl ApiKey {
    /// Whether it works at `now`.
    pub fn works_at(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// The caller that shows it. `first` is the installation's first workspace.
    pub fn caller(&self, first: WorkspaceId) -> Caller {
        let first_workspace = self.workspace == first;
        let principal = Principal::Key { key: self.id, grant: self.grant, first_workspace, person: None };
        Caller { workspace: self.workspace, principal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::System;

    #[test]
    fn secrets_have_the_form_that_clients_check_and_hide_from_debug() {
        let secret = Secret::generate(&System);
        let tail = secret.reveal().strip_prefix("rma_").expect("the prefix");
        assert_eq!(tail.len(), 43);
        assert!(tail.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'));
        assert!(!format!("{secret:?}").contains(tail));
        assert_ne!(secret, Secret::generate(&System));
    }
}
