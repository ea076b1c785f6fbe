//! `stele serve`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use stele_core::clock::System;
use stele_core::embedder::Embedder;
use stele_core::service::{Setup, Stele};
use stele_core::storage::StorageError;
use stele_embed::OpenAiEmbedder;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

use crate::backend::Backend;
use crate::backup::BackupKeeper;
use crate::cli::ServeFlags;
use crate::config::{Config, process_env};
use crate::first_start::{admin_key_file, installation};
use crate::language;
use crate::output::say;
use crate::reference;
use crate::workers::Threads;

/// Runs the server until SIGTERM or SIGINT.
pub(crate) fn run(flags: ServeFlags) -> anyhow::Result<()> {
    let config = Config::load(&flags, &process_env)?;
    let _log = crate::log::start(config.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(config));
    // A backup under way may be reading on; all that was answered is durable.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let backend = Backend::open(&config).await?;
    if crate::backup::clear_left(&config.data_dir).is_err() {
        tracing::warn!("what a killed restore left could not be removed");
    }
    let storage = backend.storage();
    let installation = installation(&*storage, &config.data_dir, &System, &System).await?;
    let models = language::models(&config)?;
    let purge_wanted = Arc::new(Notify::new());
    let wake = purge_wanted.clone();
    let setup = Setup {
        storage: storage.clone(),
        clock: Arc::new(System),
        random: Arc::new(System),
        limits: config.limits.clone(),
        body_cache_bytes: config.body_cache_bytes,
        search_index_bytes: usize::try_from(config.search_index_bytes).unwrap_or(usize::MAX),
        workers: Arc::new(Threads),
        embedder: embedder(&config)?,
        models,
        purge_wanted: Box::new(move || wake.notify_one()),
    };
    let stele = Arc::new(Stele::new(setup, installation));
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on {}: name another address with --listen", config.listen))?;
    let address = listener.local_addr()?;
    tracing::info!(
        data_dir = %config.data_dir.display(),
        database = if backend.is_new() { "newly made" } else { "opened" },
        backend = backend.name(),
        database_url = config.database_url.as_ref().map(tracing::field::display),
        model_providers = config.providers.len(),
        "data directory"
    );
    tracing::info!(%address, stores = storage.store_count().await?, "listening");
    let settler = tokio::spawn(settle(stele.clone()));
    let timekeeper = tokio::spawn(keep_time(stele.clone()));
    let sweeper = tokio::spawn(sweep(stele.clone(), Duration::from_secs(config.sweep_secs), purge_wanted));
    let metrics = config.metrics.then(|| stele_http::metrics::routes(stele.clone()));
    let reference = stele_http::reference::routes(&reference::document(config.metrics));
    let dialects =
        [wire_anthropic::routes(stele.clone()), wire_recursion::routes(stele.clone(), config.error_codes)];
    let stop = stop_signal(stele.clone())?;
    let keeper = BackupKeeper::new(backend.source(&config));
    let backups = stele_http::backups::routes(stele.clone(), keeper.clone());
    let parts: Vec<_> = dialects.into_iter().chain([reference, backups]).chain(metrics).collect();
    let inner = stele_http::router::router(stele.clone(), parts.clone(), stele_http::router::nowhere());
    let mcp = stele_mcp::routes(inner, stele_mcp::Origins(config.mcp_origins));
    let router = stele_http::router::router(stele, parts.into_iter().chain([mcp]), stele_console::pages());
    greet(address, &config.data_dir);
    stele_http::serve::serve(listener, router, stop).await;
    sweeper.abort();
    settler.abort();
    timekeeper.abort();
    tracing::info!("stopping: requests under way have ended");
    backend.close().await?;
    keeper.end().await;
    Ok(())
}

/// The embedding model, where one is named. It is not asked yet: a server starts without it.
fn embedder(config: &Config) -> anyhow::Result<Option<Arc<dyn Embedder>>> {
    let Some(named) = config.embedding.clone() else { return Ok(None) };
    let embedder = OpenAiEmbedder::new(named).context("search.embedding")?;
    Ok(Some(Arc::new(embedder)))
}

/// Done when the server is asked to stop; streams end then, for they would not by themselves.
fn stop_signal(stele: Arc<Stele>) -> anyhow::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stele.end_streams();
        tracing::info!("draining: no new connections");
    })
}

/// Sweeps at once and then every `every`; purges deleted stores as soon as there are some.
async fn sweep(stele: Arc<Stele>, every: Duration, purge_wanted: Arc<Notify>) {
    let mut ticks = tokio::time::interval(every);
    loop {
        let swept = tokio::select! {
            _ = ticks.tick() => stele.sweep().await,
            () = purge_wanted.notified() => stele.purge().await,
        };
        match swept {
            Ok(swept) if swept != Default::default() => {
                tracing::info!(versions = swept.versions, stores = swept.stores, "swept");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(error = &error as &dyn std::error::Error, "a sweep failed"),
        }
    }
}

/// Looks every second for work items whose lease has passed, also where no worker polls.
async fn settle(stele: Arc<Stele>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        if let Err(error) = stele.work_settle().await {
            tracing::warn!(error = &error as &dyn std::error::Error, "work items could not be settled");
        }
    }
}

/// Looks every second for schedules whose occasion has come, and every minute for receipts that count no more.
async fn keep_time(stele: Arc<Stele>) {
    let mut ticks = tokio::time::interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    for tick in 0u64.. {
        ticks.tick().await;
        loop {
            match stele.timers_look().await {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "schedules could not be looked at"
                    );
                    break;
                }
            }
        }
        if tick % 60 == 0
            && let Err(error) = forget(&stele).await
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "what has lapsed could not be forgotten"
            );
        }
    }
}

/// Removes receipts and console sessions that count no more.
async fn forget(stele: &Stele) -> Result<(), StorageError> {
    stele.receipts_forget().await?;
    stele.console_sessions_forget().await
}

/// Tells the person at the terminal how to begin. The key itself is never printed.
fn greet(address: SocketAddr, data_dir: &Path) {
    let key = admin_key_file(data_dir);
    say(&format!("Stele is ready at http://{address}"));
    if !key.exists() {
        return say("Admin key: made by the first server on this database, in its data directory");
    }
    let key = key.display();
    let quoted = format!("'{}'", key.to_string().replace('\'', "'\\''"));
    say(&format!("Admin key: {key}"));
    say("A first request to paste:");
    say(&format!(
        "  curl http://{address}/v1/memory_stores -H \"x-api-key: $(cat {quoted})\" \\\n    \
         -H 'anthropic-beta: agent-memory-2026-07-22' -H 'content-type: application/json' \\\n    \
         -d '{{\"name\": \"Notes\"}}'"
    ));
}
