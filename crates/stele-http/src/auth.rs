//! Who asks: `x-api-key` or Bearer, both in every dialect. DESIGN 6, spec/anthropic.md 1.2.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use stele_core::access::Caller;
use stele_core::service::Stele;
use stele_core::storage::StorageError;

/// Why nobody is known.
#[derive(Debug)]
pub enum Unknown {
    /// No credential, a malformed one, or a key that is unknown, revoked or expired.
    Unauthenticated,
    /// The storage could not say.
    Storage(StorageError),
}

/// The credential that a request shows: `x-api-key` decides where both are sent.
pub fn credential(headers: &HeaderMap) -> Option<&str> {
    if let Some(key) = headers.get("x-api-key") {
        return key.to_str().ok().map(str::trim).filter(|key| !key.is_empty());
    }
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The caller behind a request.
///
/// # Errors
/// Nobody known.
pub async fn caller(stele: &Stele, headers: &HeaderMap) -> Result<Caller, Unknown> {
    let shown = credential(headers).ok_or(Unknown::Unauthenticated)?;
    match stele.authenticate(shown).await {
        Ok(caller) => caller.ok_or(Unknown::Unauthenticated),
        Err(error) => Err(Unknown::Storage(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(headers: &[(&'static str, &'static str)]) -> Option<String> {
        let headers: HeaderMap =
            headers.iter().map(|(k, v)| (k.parse().expect("a name"), v.parse().expect("a value"))).collect();
        credential(&headers).map(str::to_owned)
    }

    #[test]
    fn both_headers_carry_a_key_and_x_api_key_decides() {
        assert_eq!(shown(&[("x-api-key", "a")]).as_deref(), Some("a"));
        assert_eq!(shown(&[("authorization", "bearer  b")]).as_deref(), Some("b"));
        assert_eq!(shown(&[("authorization", "Bearer b"), ("x-api-key", "a")]).as_deref(), Some("a"));
    }

    #[test]
    fn what_carries_no_key_is_no_credential() {
        for bad in ["Bearer", "Bearer ", "Basic eDp5", "token", ""] {
            assert_eq!(shown(&[("authorization", bad)]), None, "{bad:?}");
        }
        assert_eq!(shown(&[("x-api-key", "")]), None);
        assert_eq!(shown(&[("authorization", "Bearer b"), ("x-api-key", "")]), None);
        assert_eq!(shown(&[]), None);
    }
}
