//! Ids as this dialect spells them: a prefix, `01`, and the base58 of the 16 bytes. DESIGN 4, spec/anthropic.md 1.5.

use stele_core::id::{
    AgentId, EnvironmentId, EnvironmentKeyId, EventId, KeyId, MemoryId, ResourceId, ServiceAccountId,
    SessionId, StoreId, UserId, VersionId, WorkItemId, WorkspaceId,
};
use stele_http::request::{base58, from_base58};

/// An id with a prefix in this dialect.
pub(crate) trait Prefixed: Copy {
    /// The prefix, without its `_`.
    const PREFIX: &'static str;

    /// The id with these bytes.
    fn from_raw(bytes: [u8; 16]) -> Self;

    /// Its bytes.
    fn raw(&self) -> [u8; 16];

    /// Its spelling.
    fn spell(&self) -> String {
        format!("{}_01{}", Self::PREFIX, base58(self.raw()))
    }

    /// The id spelled so; `None` if it is malformed or has another prefix.
    fn read(text: &str) -> Option<Self> {
        let token = text.strip_prefix(Self::PREFIX)?.strip_prefix("_01")?;
        from_base58(token).map(Self::from_raw)
    }
}

/// The id in a filter: also one of the vendor's form that cannot be ours, which then names nothing.
/// spec/anthropic.md 1.5 and 4.3.
pub(crate) fn read_filter<T: Prefixed>(text: &str) -> Option<T> {
    T::read(text).or_else(|| {
        let token = text.strip_prefix(T::PREFIX)?.strip_prefix('_')?;
        let well_formed = token.len() >= 20 && token.bytes().all(|b| b.is_ascii_alphanumeric());
        well_formed.then(|| T::from_raw([0; 16]))
    })
}

macro_rules! prefixed {
    ($($name:ident $prefix:literal)*) => {$(
        impl Prefixed for $name {
            const PREFIX: &'static str = $prefix;

            fn from_raw(bytes: [u8; 16]) -> Self {
                Self::from_bytes(bytes)
            }

            fn raw(&self) -> [u8; 16] {
                *self.as_bytes()
            }
        }
    )*};
}

prefixed! {
    StoreId "memstore"
    MemoryId "mem"
    VersionId "memver"
    SessionId "sesn"
    KeyId "apikey"
    UserId "user"
    ServiceAccountId "svac"
    WorkspaceId "wrkspc"
    AgentId "agent"
    EnvironmentId "env"
    EnvironmentKeyId "envkey"
    EventId "sevt"
    ResourceId "sesrsc"
    WorkItemId "work"
}

/// The id of a session in a filter; `session_` is read too.
pub(crate) fn read_session(text: &str) -> Option<SessionId> {
    match text.strip_prefix("session_01") {
        Some(token) => from_base58(token).map(SessionId::from_bytes),
        None => read_filter(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spelling_is_reversible_and_keeps_the_order(a in any::<[u8; 16]>(), b in any::<[u8; 16]>()) {
            let (x, y) = (StoreId::from_bytes(a), StoreId::from_bytes(b));
            prop_assert_eq!(StoreId::read(&x.spell()), Some(x));
            prop_assert_eq!(x.cmp(&y), x.spell().cmp(&y.spell()));
        }
    }

    #[test]
    fn other_prefixes_and_forms_are_no_ids() {
        let memory = MemoryId::from_bytes([7; 16]).spell();
        assert_eq!(StoreId::read(&memory), None);
        assert_eq!(VersionId::read(&memory), None);
        for bad in ["mem_", "mem_01", "nonsense", "", &memory.to_uppercase(), &format!("{memory}1")] {
            assert_eq!(MemoryId::read(bad), None, "{bad}");
        }
        let session = SessionId::from_bytes([9; 16]);
        assert_eq!(read_session(&session.spell()), Some(session));
        assert_eq!(read_session(&session.spell().replace("sesn_", "session_")), Some(session));
    }
}
