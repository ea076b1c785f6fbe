//! Ids that a person or model names, in either spelling, as the routes want them.

use stele_core::id::{AgentId, SessionId, StoreId};
use stele_http::request::{base58, from_base58};

/// The bytes of an id that the Anthropic dialect spells with one of `prefixes`.
fn spelled(text: &str, prefixes: &[&str]) -> Option<[u8; 16]> {
    prefixes.iter().find_map(|prefix| from_base58(text.strip_prefix(prefix)?.strip_prefix("_01")?))
}

/// A store's id as a UUID.
pub(crate) fn store_uuid(text: &str) -> Option<String> {
    let id = spelled(text, &["memstore"]).map(StoreId::from_bytes);
    Some(id.or_else(|| StoreId::parse(&text.to_ascii_lowercase()))?.to_string())
}

/// A store's id, given as a UUID, as the Anthropic dialect spells it.
pub(crate) fn store_token(uuid: &str) -> Option<String> {
    Some(format!("memstore_01{}", base58(*StoreId::parse(uuid)?.as_bytes())))
}

/// An agent's id as a UUID.
pub(crate) fn agent_uuid(text: &str) -> Option<String> {
    let id = spelled(text, &["agent"]).map(AgentId::from_bytes);
    Some(id.or_else(|| AgentId::parse(&text.to_ascii_lowercase()))?.to_string())
}

/// A session's id, given in any spelling, as a UUID.
pub fn session_uuid(text: &str) -> Option<String> {
    let id = spelled(text, &["sesn", "session"]).map(SessionId::from_bytes);
    Some(id.or_else(|| SessionId::parse(&text.to_ascii_lowercase()))?.to_string())
}

/// A session's id, given as a UUID, as the Anthropic dialect spells it.
pub(crate) fn session_token(uuid: &str) -> Option<String> {
    Some(format!("sesn_01{}", base58(*SessionId::parse(uuid)?.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_name_the_same_thing() {
        let uuid = StoreId::from_bytes([7; 16]).to_string();
        let token = store_token(&uuid).expect("an id");
        assert_eq!(store_uuid(&token), Some(uuid.clone()));
        assert_eq!(store_uuid(&uuid.to_uppercase()), Some(uuid.clone()));
        assert_eq!(agent_uuid(&token.replace("memstore", "agent")), Some(uuid.clone()));
        for prefix in ["sesn", "session"] {
            assert_eq!(session_uuid(&token.replace("memstore", prefix)), Some(uuid.clone()));
        }
        assert_eq!(session_token(&uuid), Some(token.replace("memstore", "sesn")));
        for bad in ["", "memstore_01", "memstore_02zzz", "notes", "0191"] {
            assert_eq!((store_uuid(bad), session_uuid(bad), agent_uuid(bad)), (None, None, None), "{bad}");
        }
    }
}
