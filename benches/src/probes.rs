//! The probes that run beside every measurement.

use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;

use crate::load::Figures;

/// In-place 4 kB writes, each followed by `fdatasync`, in `dir`.
pub(crate) fn fdatasync(dir: &std::path::Path, time: Duration) -> anyhow::Result<Figures> {
    const BLOCKS: u64 = 256;
    let file = OpenOptions::new().create(true).truncate(true).write(true).open(dir.join("probe"))?;
    let block = [7u8; 4096];
    for number in 0..BLOCKS {
        file.write_all_at(&block, number * 4096)?;
    }
    file.sync_all()?;
    let (began, mut times) = (Instant::now(), Vec::new());
    while began.elapsed() < time {
        let sent = Instant::now();
        file.write_all_at(&block, (times.len() as u64 % BLOCKS) * 4096)?;
        file.sync_data()?;
        times.push(sent.elapsed().as_secs_f64());
    }
    Ok(Figures::of(times, began.elapsed()))
}

/// A bare axum server that says hello, on a runtime like Stele's.
pub(crate) struct Hello {
    pub(crate) address: SocketAddr,
    _runtime: tokio::runtime::Runtime,
}

impl Hello {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let router = Router::new().route("/hello", get(|| async { "hello" }));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, _runtime: runtime })
    }
}

/// The share of time, in percent, that some task waited for a CPU in the last 10 s; `None` where the kernel doesn't
/// say.
pub(crate) fn cpu_pressure() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    text.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse().ok()
}
