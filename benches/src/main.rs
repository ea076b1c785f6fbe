//! `make bench`: Stele beside the best that this machine does for the same work, interleaved, as ratios.
//!
//! Machines are shared and noisy, so no absolute figure means much: every run has two probes beside it (an in-place
//! 4 kB `fdatasync`, a bare axum hello on the same kind of runtime) and records the CPU pressure.

mod bare;
mod bare_postgres;
mod load;
mod postgres;
mod probes;
mod report;
mod server;
mod texts;
mod work;

use std::path::PathBuf;

use anyhow::Context;

use crate::report::{Report, Row};
use crate::server::Server;
use crate::work::{Round, Works};

/// A fast machine makes more than 10,000 memories in a round.
const NO_CAP: (&str, &str) = ("STELE_MAX_MEMORIES_PER_STORE", "100000000");
/// Rounds; the median of each figure counts.
const ROUNDS: usize = 5;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let binary = PathBuf::from(args.next().context("usage: stele-bench BINARY [SEED [postgres]]")?);
    let seed: u64 = args.next().map_or(Ok(1), |seed| seed.parse())?;
    let on_postgres = args.next().is_some_and(|word| word == "postgres");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if on_postgres {
        return postgres::run(&binary, seed, &runtime);
    }
    let hello = probes::Hello::start()?;
    let before = probes::cpu_pressure();
    let mut rounds = Vec::new();
    for number in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", number + 1);
        rounds.push(Works::new(&binary, seed + number as u64, hello.address).round(&runtime)?);
    }
    eprintln!("a fleet of 1,000 stores");
    let fleet = Works::new(&binary, seed, hello.address).fleet(&runtime)?;
    let size = std::fs::metadata(&binary)?.len();
    report(before, &rounds, &fleet, size).print();
    Ok(())
}

fn report(before: Option<f64>, rounds: &[Round], fleet: &work::Fleet, binary_bytes: u64) -> Report {
    let mut report = Report::new(before, rounds.iter().map(|round| round.pressure).collect());
    let ratio = |name: &'static str, bar: &'static str, of: &dyn Fn(&Round) -> f64| {
        Row::median(name, bar, rounds.iter().map(of).collect())
    };
    report.rows.extend([
        ratio("durable creates, 64 connections / bare rusqlite loop", ">= 0.45", &|r| {
            r.creates.rate / r.bare.rate
        }),
        ratio("durable creates, 64 connections / fdatasync probe", ">= 1.0", &|r| {
            r.creates.rate / r.fdatasync.rate
        }),
        ratio("create, one connection, p50 / (2 fdatasync + 2 hello)", "<= 1.0", &|r| {
            r.create_one.p50 / (2.0 * r.fdatasync.p50 + 2.0 * r.hello_one.p50)
        }),
        ratio("read by id, 32 connections, cached / hello", ">= 0.45", &|r| {
            r.read_cached.rate / r.hello.rate
        }),
        ratio("read by id, 32 connections, not cached / hello", ">= 0.17", &|r| {
            r.read_uncached.rate / r.hello.rate
        }),
        ratio("update with precondition, 64 connections / creates", ">= 0.75", &|r| {
            r.updates.rate / r.creates.rate
        }),
        ratio("import of an archive of 10,000 Markdown files / bare rusqlite loop", ">= 0.3", &|r| {
            r.imported / r.bare.rate
        }),
        ratio("list 100 of 10,000, first page, p50 in hello round trips", "<= 8", &|r| {
            r.list_first.p50 / r.hello_one.p50
        }),
        ratio("list 100 of 10,000, last page / first page, p50", "about 1", &|r| {
            r.list_last.p50 / r.list_first.p50
        }),
    ]);
    report.rows.extend(fleet.rows());
    report.rows.push(Row::single("released binary, MB", "< 40", binary_bytes as f64 / 1e6));
    report
}

/// Starts the server on a fresh directory, so that a round begins with nothing.
fn fresh(binary: &std::path::Path, env: &[(&str, &str)]) -> anyhow::Result<Server> {
    let env: Vec<_> = env.iter().copied().chain([NO_CAP]).collect();
    Server::start(binary, tempfile::tempdir()?, &env)
}
