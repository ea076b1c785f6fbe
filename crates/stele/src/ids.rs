//! Ids in the two spellings of one 128-bit number: `memstore_01...` of the Anthropic dialect, and UUID.

use stele_core::id::{KeyId, SessionId, StoreId, VersionId};
use stele_http::request::{base58, from_base58};

fn token(text: &str, prefix: &str) -> Option<[u8; 16]> {
    from_base58(text.strip_prefix(prefix)?)
}

/// A key's id, given in either spelling, as a UUID.
pub(crate) fn key_uuid(text: &str) -> Option<String> {
    let id = token(text, "apikey_01")
        .map(KeyId::from_bytes)
        .or_else(|| KeyId::parse(&text.to_ascii_lowercase()))?;
    Some(id.to_string())
}

/// A key's id, given in either spelling, as the Anthropic dialect spells it.
pub(crate) fn key_token(text: &str) -> Option<String> {
    let id = KeyId::parse(&key_uuid(text)?)?;
    Some(format!("apikey_01{}", base58(*id.as_bytes())))
}

/// A store's id, given as a UUID, as the Anthropic dialect spells it.
pub(crate) fn store_token(uuid: &str) -> Option<String> {
    Some(format!("memstore_01{}", base58(*StoreId::parse(&uuid.to_ascii_lowercase())?.as_bytes())))
}

/// A store's id, given as the Anthropic dialect spells it, as a UUID.
pub(crate) fn store_uuid(text: &str) -> Option<String> {
    Some(StoreId::from_bytes(token(text, "memstore_01")?).to_string())
}

/// A version's id, given as the Anthropic dialect spells it, as a UUID.
pub(crate) fn version_uuid(text: &str) -> Option<String> {
    Some(VersionId::from_bytes(token(text, "memver_01")?).to_string())
}

/// A session's id, given in either spelling, as a UUID.
pub(crate) fn session_uuid(text: &str) -> Option<String> {
    let id = token(text, "sesn_01")
        .map(SessionId::from_bytes)
        .or_else(|| SessionId::parse(&text.to_ascii_lowercase()))?;
    Some(id.to_string())
}

/// A session's id, given in either spelling, as the Anthropic dialect spells it.
pub(crate) fn session_token(text: &str) -> Option<String> {
    Some(format!("sesn_01{}", base58(*SessionId::parse(&session_uuid(text)?)?.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_name_the_same_thing() {
        let id = KeyId::from_bytes([7; 16]).to_string();
        let token = key_token(&id).expect("an id");
        assert!(token.starts_with("apikey_01"), "{token}");
        assert_eq!(key_uuid(&token), Some(id.clone()));
        assert_eq!(key_uuid(&id.to_uppercase()), Some(id.clone()));
        assert_eq!(store_token(&id), Some(token.replace("apikey", "memstore")));
        assert_eq!(store_uuid(&token.replace("apikey", "memstore")), Some(id.clone()));
        for bad in ["", "apikey_01", "apikey_02zzz", "memstore_01", "0191"] {
            assert_eq!((key_uuid(bad), store_token(bad)), (None, None), "{bad}");
        }
    }
}
