//! What the address of a server says about where it is.

use std::net::IpAddr;

use ureq::http::Uri;

/// Whether the address is one of this machine's own, read as the client itself reads it.
pub fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|six| six.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether two addresses lead to the same server: scheme, host and port. RFC 6454 4.
pub fn same_origin(one: &str, other: &str) -> bool {
    matches!((origin(one), origin(other)), (Some(one), Some(other)) if one == other)
}

fn origin(url: &str) -> Option<(String, String, u16)> {
    let uri = url.parse::<Uri>().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    Some((scheme, uri.host()?.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_loopback() {
        for local in ["http://127.0.0.1:1/", "http://LOCALHOST", "http://[::1]:80/x", "http://me@127.0.0.2"] {
            assert!(is_loopback(local), "{local}");
        }
        for other in [
            "http://example.com",
            "http://localhost@example.com",
            "http://127.0.0.1.example.com",
            "https://[::2]",
            "",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        assert!(same_origin("https://A.example", "https://a.example:443/x/"));
        for other in ["http://a.example", "https://b.example", "https://a.example:444", "https://a.example@b"]
        {
            assert!(!same_origin("https://a.example", other), "{other}");
        }
    }
}
