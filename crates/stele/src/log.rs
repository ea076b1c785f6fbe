//! Logs: structured lines on standard error, of Stele's own parts only. What other crates would say at a low level
//! could hold addresses and headers, so of them only warnings are shown.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const OWN: [&str; 7] =
    ["stele", "stele_core", "stele_http", "stele_mount", "store_postgres", "store_sqlite", "wire_anthropic"];
/// Its messages hold what was sent and answered, also those of warnings.
const SILENT: &str = "rmcp";

/// Starts logging at `level`. Lines are written by a thread of their own until the guard is dropped; one that the
/// terminal or pipe does not take in time is left out rather than holding up the server.
pub(crate) fn start(level: LevelFilter) -> WorkerGuard {
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let others = level.min(LevelFilter::WARN);
    let targets = Targets::new().with_default(others).with_targets(OWN.map(|target| (target, level)));
    let targets = targets.with_target(SILENT, LevelFilter::OFF);
    let lines =
        tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(lines).with(targets).init();
    guard
}
