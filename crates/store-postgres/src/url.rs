//! `postgres://` addresses: what they say, and how they are shown.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use tokio_postgres::config::{Config, Host, SslMode};

/// Where a database is. Shown without its password, by `Debug` too.
#[derive(Clone)]
pub struct Url {
    pub(crate) config: Config,
    pub(crate) root_certificates: Option<PathBuf>,
    shown: String,
}

/// What is wrong with an address. Never shows a password.
#[derive(Debug, thiserror::Error)]
pub enum UrlError {
    /// It does not start with `postgres://`.
    #[error("a database address starts with postgres:// or postgresql://")]
    Scheme,
    /// The TLS mode is not one of ours.
    #[error("sslmode must be disable, require, verify-ca or verify-full, not {0:?}")]
    SslMode(String),
    /// PostgreSQL's driver cannot read it.
    #[error("the database address cannot be read")]
    Syntax(#[source] tokio_postgres::Error),
    /// It names no database server.
    #[error("the database address names no host")]
    NoHost,
}

impl Url {
    /// Whether the text looks like an address of PostgreSQL rather than a directory.
    pub fn looks_like(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    fn is_local(config: &Config) -> bool {
        config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        })
    }
}

impl FromStr for Url {
    type Err = UrlError;

    /// Reads an address as libpq writes it. Unlike libpq's, a mode with TLS always checks the certificate, and an
    /// address of another machine without a mode asks for TLS.
    fn from_str(text: &str) -> Result<Self, UrlError> {
        if !Self::looks_like(text) {
            return Err(UrlError::Scheme);
        }
        let (address, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut rest, mut mode, mut root_certificates) = (Vec::new(), None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("sslmode", value)) => mode = Some(value),
                Some(("sslrootcert", value)) => root_certificates = Some(PathBuf::from(value)),
                _ => rest.push(pair),
            }
        }
        let plain =
            if rest.is_empty() { address.to_owned() } else { format!("{address}?{}", rest.join("&")) };
        let mut config: Config = plain.parse().map_err(UrlError::Syntax)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(UrlError::NoHost);
        }
        config.ssl_mode(match mode {
            Some("disable") => SslMode::Disable,
            Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            Some(other) => return Err(UrlError::SslMode(other.to_owned())),
            None if Self::is_local(&config) => SslMode::Disable,
            None => SslMode::Require,
        });
        Ok(Self { shown: shown(address), config, root_certificates })
    }
}

/// The address without its password and without parameters, which may hold one.
fn shown(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("postgres", address));
    match rest.rsplit_once('@') {
        Some((user, place)) => match user.split_once(':') {
            Some((name, _)) => format!("{scheme}://{name}:***@{place}"),
            None => address.to_owned(),
        },
        None => address.to_owned(),
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Url({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_never_shown() {
        for (text, shown) in [
            ("postgres://u:se:cr@et@db/x", "postgres://u:***@db/x"),
            ("postgresql://u@db/x?password=secret", "postgresql://u@db/x"),
            ("postgres://db/x", "postgres://db/x"),
        ] {
            let shows = super::shown(text.split('?').next().expect("a part"));
            assert_eq!(shows, shown);
        }
        let url: Url = "postgres://u:secret@db/x?password=secret".parse().expect("an address");
        assert!(!format!("{url} {url:?}").contains("secret"));
        let error = "postgres://u:secret@db:port/x".parse::<Url>().expect_err("a bad port");
        assert!(!format!("{error} {error:?}").contains("secret"));
    }

    #[test]
    fn tls_is_asked_for_unless_the_server_is_here_or_it_is_switched_off() {
        let mode = |text: &str| text.parse::<Url>().expect("an address").config.get_ssl_mode();
        assert_eq!(mode("postgres://u@db.example/x"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example/x?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@127.0.0.1/x"), SslMode::Disable);
        assert_eq!(mode("postgres://u@%2Frun%2Fpostgresql/x"), SslMode::Disable);
        assert_eq!(mode("postgres://u@localhost/x?sslmode=verify-full"), SslMode::Require);
        assert!("postgres://u@db/x?sslmode=prefer".parse::<Url>().is_err());
        assert!("mysql://u@db/x".parse::<Url>().is_err());
    }
}
