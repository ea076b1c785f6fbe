//! Who asks: `x-api-key` or Bearer, both in every dialect; else the cookie of the console. DESIGN 6 and 13,
//! spec/anthropic.md 1.2.

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use stele_core::access::Caller;
use stele_core::key::CONSOLE_PREFIX;
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

/// The header that the console sends with each request: no page of another origin can, without asking first.
pub const CONSOLE_HEADER: &str = "stele-console";

/// The credential that a request shows: `x-api-key` decides where both headers are sent; the console's cookie counts
/// only without them, and only where the console's own page asks.
pub fn credential(headers: &HeaderMap) -> Option<&str> {
    if headers.contains_key("x-api-key") || headers.contains_key(AUTHORIZATION) {
        // What a cookie holds is no key: it would work without the checks that cookies need.
        return shown_key(headers).filter(|key| !key.starts_with(CONSOLE_PREFIX));
    }
    console_cookie(headers).filter(|_| asked_by_console(headers))
}

fn shown_key(headers: &HeaderMap) -> Option<&str> {
    if let Some(key) = headers.get("x-api-key") {
        return key.to_str().ok().map(str::trim).filter(|key| !key.is_empty());
    }
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Whether the console's own page sent the request: it carries [`CONSOLE_HEADER`], and the browser does not say that
/// the page is of another origin. `SameSite=Strict` keeps the cookie from other sites, but not from other ports of this
/// machine.
pub fn asked_by_console(headers: &HeaderMap) -> bool {
    if !headers.contains_key(CONSOLE_HEADER) {
        return false;
    }
    if let Some(site) = headers.get("sec-fetch-site") {
        return site.as_bytes() == b"same-origin";
    }
    // Browsers leave the former out where a plain address is not of this machine.
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let authority = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, rest)| rest);
    authority.is_some() && authority == headers.get(HOST).and_then(|host| host.to_str().ok())
}

/// The name of the console's cookie. It has the port, for cookies know no ports and two servers may share a machine.
pub fn console_cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match host.rsplit_once(':').map(|(_, port)| port) {
        Some(port) if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) => {
            format!("stele_console_{port}")
        }
        _ => "stele_console".into(),
    }
}

/// The secret in the console's cookie.
pub fn console_cookie(headers: &HeaderMap) -> Option<&str> {
    let name = console_cookie_name(headers);
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    cookies
        .flat_map(|cookies| cookies.split(';'))
        .filter_map(|cookie| cookie.trim().split_once('='))
        .find_map(|(key, value)| (key == name && value.starts_with(CONSOLE_PREFIX)).then_some(value))
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

    const COOKIE: (&str, &str) = ("cookie", "theme=dark; stele_console_7878=scs_x");
    const HOST: (&str, &str) = ("host", "127.0.0.1:7878");
    const ASKED: (&str, &str) = ("stele-console", "1");

    #[test]
    fn the_cookie_counts_where_the_console_itself_asks_and_nowhere_else() {
        assert_eq!(shown(&[HOST, COOKIE, ASKED]).as_deref(), Some("scs_x"));
        assert_eq!(
            shown(&[HOST, COOKIE, ASKED, ("sec-fetch-site", "same-origin")]).as_deref(),
            Some("scs_x")
        );
        assert_eq!(
            shown(&[HOST, COOKIE, ASKED, ("origin", "http://127.0.0.1:7878")]).as_deref(),
            Some("scs_x")
        );
        assert_eq!(shown(&[HOST, COOKIE]), None, "a form or link of any page");
        for site in ["cross-site", "same-site", "none"] {
            assert_eq!(shown(&[HOST, COOKIE, ASKED, ("sec-fetch-site", site)]), None, "{site}");
        }
        for origin in ["http://127.0.0.1:8080", "http://evil.example", "null"] {
            assert_eq!(shown(&[HOST, COOKIE, ASKED, ("origin", origin)]), None, "{origin}");
        }
        assert_eq!(shown(&[("host", "127.0.0.1:7979"), COOKIE, ASKED]), None, "the cookie of another server");
    }

    #[test]
    fn a_key_in_a_header_wins_over_the_cookie_and_a_cookie_is_no_key() {
        assert_eq!(shown(&[HOST, COOKIE, ASKED, ("x-api-key", "a")]).as_deref(), Some("a"));
        assert_eq!(shown(&[HOST, COOKIE, ASKED, ("authorization", "Basic eDp5")]), None);
        assert_eq!(shown(&[("x-api-key", "scs_x")]), None);
        assert_eq!(shown(&[("authorization", "Bearer scs_x")]), None);
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
