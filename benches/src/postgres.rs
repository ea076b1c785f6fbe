//! `make bench-postgres`: Stele on a throw-away PostgreSQL that syncs, beside bare loops on the same one.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use throwaway_postgres::{Cluster, Database};
use tokio::runtime::Runtime;

use crate::load::Figures;
use crate::report::{Report, Row};
use crate::server::Server;
use crate::work::Works;
use crate::{bare_postgres, fresh, probes};

const TIME: Duration = Duration::from_secs(2);
/// Rounds at most; the median of each figure counts.
const ROUNDS: usize = 5;
/// No round begins after so much time, so that the whole takes some three minutes on any machine: filling two stores
/// through HTTP takes most of a round, and how long depends on how fast the disk syncs.
const ROUNDS_BUDGET: Duration = Duration::from_secs(100);
const LOOPS: usize = 64;
const READERS: usize = 32;
/// Memories that are read.
const STORE: usize = 2_000;
/// Versions that are copied.
const COPIED: usize = 20_000;

struct Round {
    pressure: Option<f64>,
    bare_spread: Figures,
    spread: Figures,
    bare_one: Figures,
    one: Figures,
    bare_reads: Figures,
    cached: Figures,
    uncached: Figures,
}

/// A database on the cluster with Stele's tables in it.
fn migrated(binary: &Path, cluster: &'static Cluster) -> anyhow::Result<Database> {
    let database = cluster.empty("");
    let status =
        Command::new(binary).args(["db", "migrate", "--database-url", &database.url()]).output()?.status;
    ensure!(status.success(), "the schema could not be made");
    Ok(database)
}

fn served(binary: &Path, database: &Database, env: &[(&str, &str)]) -> anyhow::Result<Server> {
    let url = database.url();
    let env: Vec<_> = env.iter().copied().chain([("STELE_DATABASE_URL", url.as_str())]).collect();
    fresh(binary, &env)
}

pub(crate) fn run(binary: &Path, seed: u64, runtime: &Runtime) -> anyhow::Result<()> {
    let before = probes::cpu_pressure();
    let settings = ["fsync=on", "full_page_writes=on", "max_connections=200", "shared_buffers=256MB"];
    let cluster: &'static Cluster = Box::leak(Box::new(Cluster::start(&settings)));
    let (began, mut rounds) = (Instant::now(), Vec::new());
    for number in 0..ROUNDS {
        if number > 0 && began.elapsed() > ROUNDS_BUDGET {
            eprintln!("{number} of {ROUNDS} rounds in {} s: no more", began.elapsed().as_secs());
            break;
        }
        eprintln!("round {} of {ROUNDS}", number + 1);
        rounds.push(round(binary, cluster, seed + number as u64, runtime)?);
    }
    eprintln!("copies of {COPIED} versions");
    let copies = copies(binary, cluster, seed, runtime)?;
    let mut report = Report::new(before, rounds.iter().map(|round| round.pressure).collect());
    let ratio =
        |name, of: &dyn Fn(&Round) -> f64| Row::median(name, ">= 0.5", rounds.iter().map(of).collect());
    report.rows.extend([
        ratio("creates over 64 stores, 64 connections / bare loop", &|r| r.spread.rate / r.bare_spread.rate),
        ratio("creates in one store, 64 connections / bare loop", &|r| r.one.rate / r.bare_one.rate),
        ratio("reads, 32 connections, cached / bare pipelined reads", &|r| r.cached.rate / r.bare_reads.rate),
        ratio("reads, 32 connections, not cached / bare pipelined reads", &|r| {
            r.uncached.rate / r.bare_reads.rate
        }),
    ]);
    report.rows.extend(copies);
    report.print();
    cluster.stop("INT");
    Ok(())
}

fn round(binary: &Path, cluster: &'static Cluster, seed: u64, runtime: &Runtime) -> anyhow::Result<Round> {
    let (bare, one, two) = (migrated(binary, cluster)?, cluster.empty(""), cluster.empty(""));
    let (server, cold) =
        (served(binary, &one, &[])?, served(binary, &two, &[("STELE_BODY_CACHE_BYTES", "0")])?);
    let works = Works::new(binary, seed, server.address);
    runtime.block_on(bare_postgres::inserts(&bare.url(), STORE, seed))?;
    let (filled, uncached) =
        (runtime.block_on(works.fill(&server, STORE))?, runtime.block_on(works.fill(&cold, STORE))?);
    Ok(Round {
        bare_spread: runtime.block_on(bare_postgres::creates(&bare.url(), LOOPS, LOOPS, TIME, seed))?,
        spread: runtime.block_on(works.creates(&server, LOOPS, LOOPS, TIME))?,
        bare_one: runtime.block_on(bare_postgres::creates(&bare.url(), LOOPS, 1, TIME, seed))?,
        one: runtime.block_on(works.creates(&server, LOOPS, 1, TIME))?,
        bare_reads: runtime.block_on(bare_postgres::reads(&bare.url(), STORE, READERS, TIME, seed))?,
        cached: runtime.block_on(works.reads(&server, &filled, TIME))?,
        uncached: runtime.block_on(works.reads(&cold, &uncached, TIME))?,
        pressure: probes::cpu_pressure(),
    })
}

/// From an embedded database to PostgreSQL and back, each beside bare inserts into its target.
fn copies(
    binary: &Path,
    cluster: &'static Cluster,
    seed: u64,
    runtime: &Runtime,
) -> anyhow::Result<[Row; 2]> {
    let server = fresh(binary, &[])?;
    let works = Works::new(binary, seed, server.address);
    runtime.block_on(works.fill_only(&server, COPIED))?;
    let home = server.into_dir()?;
    let (target, back) = (cluster.empty(""), home.path().join("back"));
    let there = copy(binary, &home.path().join("data").display().to_string(), &target.url())?;
    let again = copy(binary, &target.url(), &back.display().to_string())?;
    let bare = migrated(binary, cluster)?;
    let into_postgres = runtime.block_on(bare_postgres::inserts(&bare.url(), COPIED, seed))?;
    let into_sqlite = crate::bare::inserts(home.path(), COPIED as u64, seed)?;
    let ratio = |bare: Duration, copy: Duration| bare.as_secs_f64() / copy.as_secs_f64();
    Ok([
        Row::single("db copy to PostgreSQL, compared / bare inserts", ">= 0.3", ratio(into_postgres, there)),
        Row::single("db copy to SQLite, compared / bare inserts", ">= 0.3", ratio(into_sqlite, again)),
    ])
}

fn copy(binary: &Path, from: &str, to: &str) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let output = Command::new(binary).args(["db", "copy", "--from", from, "--to", to]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(began.elapsed())
}
