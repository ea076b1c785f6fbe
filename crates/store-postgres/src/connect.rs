//! One connection, made ready: settings that the rules rest on, and all statements.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::open::OpenError;
use crate::statements::Statements;
use crate::url::Url;

/// The schema that all tables are in; nothing else of a shared database is touched.
pub(crate) const SCHEMA: &str = "stele";
/// How long one host may take to let us in.
const CONNECT: Duration = Duration::from_secs(3);

/// A connection and its statements.
pub(crate) struct Connected {
    pub(crate) client: Client,
    pub(crate) statements: Statements,
}

/// Makes connections.
pub(crate) struct Connector {
    config: tokio_postgres::Config,
    tls: Option<MakeRustlsConnect>,
    settings: String,
}

impl Connector {
    /// For the server at `url`, no request to which may take longer than `patience`.
    pub(crate) fn new(url: &Url, patience: Duration) -> Result<Self, OpenError> {
        let mut config = url.config.clone();
        config.application_name("stele");
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        // A firewall that drops idle connections sees traffic; one that dropped them all the same is noticed.
        config.keepalives_idle(Duration::from_secs(30)).keepalives_interval(Duration::from_secs(5));
        config.keepalives_retries(3).tcp_user_timeout(Duration::from_secs(3));
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(tls(url)?),
        };
        Ok(Self { config, tls, settings: settings(patience) })
    }

    /// A connection as the server gives it.
    pub(crate) async fn raw(&self) -> Result<Client, tokio_postgres::Error> {
        // The task that drives a connection ends when its client is dropped or the server goes away.
        match &self.tls {
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(connection);
                Ok(client)
            }
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                tokio::spawn(connection);
                Ok(client)
            }
        }
    }

    /// A connection that hears what is said on `channel`; both ends say when it is lost.
    pub(crate) async fn listening(
        &self,
        channel: &str,
    ) -> Result<(Client, UnboundedReceiver<String>), tokio_postgres::Error> {
        let (said, heard) = unbounded_channel();
        let client = match &self.tls {
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                tokio::spawn(hear(connection, said));
                client
            }
            Some(tls) => {
                let (client, connection) = self.config.connect(tls.clone()).await?;
                tokio::spawn(hear(connection, said));
                client
            }
        };
        client.batch_execute(&format!("LISTEN {channel}")).await?;
        Ok((client, heard))
    }

    /// A connection that is ready for requests.
    pub(crate) async fn ready(&self) -> Result<Connected, tokio_postgres::Error> {
        let client = self.raw().await?;
        client.batch_execute(&self.settings).await?;
        let statements = Statements::prepare(&client).await?;
        Ok(Connected { client, statements })
    }
}

/// Drives a connection, passing on what it hears, until it is lost or nobody listens.
async fn hear<S, T>(mut connection: Connection<S, T>, said: UnboundedSender<String>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(notification) = message
            && said.send(notification.payload().to_owned()).is_err()
        {
            return;
        }
    }
}

/// Every statement is served by an index, so plans are made once and never fall back to reading whole tables; a
/// process that stops in the middle of a transaction does not keep its locks for ever.
fn settings(patience: Duration) -> String {
    let (lock, statement, idle) = (patience / 2, patience * 3 / 4, patience * 2);
    let (lock, statement, idle) = (lock.as_millis(), statement.as_millis(), idle.as_millis());
    format!(
        "SET search_path = {SCHEMA}; SET statement_timeout = {statement}; SET lock_timeout = {lock}; \
         SET idle_in_transaction_session_timeout = {idle}; SET plan_cache_mode = force_generic_plan; \
         SET enable_seqscan = off; SET jit = off; SET client_min_messages = error; \
         SELECT set_config('synchronous_commit', 'on', false) \
         WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')"
    )
}

fn tls(url: &Url) -> Result<MakeRustlsConnect, OpenError> {
    let mut roots = rustls::RootCertStore::empty();
    match &url.root_certificates {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(file) => {
            let unreadable = |why: String| OpenError::Certificates { file: file.clone(), why };
            let found = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
                roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring speaks the default versions of TLS")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
