//! Logs: structured lines on standard error, of Stele's own parts only. What other crates would say at a low level
//! could hold addresses and headers, so of them only warnings are shown.

use std::io::IsTerminal;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const OWN: [&str; 5] = ["stele", "stele_core", "stele_http", "store_sqlite", "wire_anthropic"];

/// Starts logging at `level`.
pub(crate) fn start(level: LevelFilter) {
    let others = level.min(LevelFilter::WARN);
    let targets = Targets::new().with_default(others).with_targets(OWN.map(|target| (target, level)));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(lines).with(targets).init();
}
