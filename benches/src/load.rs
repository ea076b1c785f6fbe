//! The load generator: one thread, closed loops over kept connections, the same for all contenders.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// What a load came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// Answers a second.
    pub(crate) rate: f64,
    /// Median time of one, in seconds.
    pub(crate) p50: f64,
}

impl Figures {
    /// The figures of these times, all measured within `took`.
    pub(crate) fn of(mut times: Vec<f64>, took: Duration) -> Self {
        let rate = times.len() as f64 / took.as_secs_f64();
        let middle = times.len() / 2;
        let p50 =
            if times.is_empty() { f64::NAN } else { *times.select_nth_unstable_by(middle, f64::total_cmp).1 };
        Self { rate, p50 }
    }
}

/// A request as bytes.
pub(crate) fn request(method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n\
         anthropic-beta: agent-memory-2026-07-22\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// One kept connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(64 * 1024) })
    }

    /// Sends a request and returns the body of its answer, which must be a success.
    pub(crate) async fn call(&mut self, request: &[u8]) -> anyhow::Result<&[u8]> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.buffer[..end])?;
                let length = content_length(head)?;
                let whole = end + 4 + length;
                while self.buffer.len() < whole {
                    ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the answer broke off");
                }
                let head = std::str::from_utf8(&self.buffer[..end])?;
                if !head.starts_with("HTTP/1.1 200") {
                    bail!("{head}\n{}", String::from_utf8_lossy(&self.buffer[end + 4..whole]));
                }
                return Ok(&self.buffer[end + 4..whole]);
            }
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the connection was closed");
        }
    }
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

fn content_length(head: &str) -> anyhow::Result<usize> {
    let line = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    Ok(line.map_or(Ok(0), str::parse)?)
}

/// Runs `connections` closed loops for `time`; the n-th loop sends what `next(n)` makes, one after the other.
pub(crate) async fn run<N>(
    address: SocketAddr,
    connections: usize,
    time: Duration,
    make: impl Fn(usize) -> N,
) -> anyhow::Result<Figures>
where
    N: FnMut() -> Option<Vec<u8>> + 'static,
{
    let local = LocalSet::new();
    let began = Instant::now();
    let tasks: Vec<_> = (0..connections)
        .map(|number| {
            let mut next = make(number);
            local.spawn_local(async move {
                let mut connection = Connection::open(address).await?;
                let mut times = Vec::new();
                while began.elapsed() < time {
                    let Some(request) = next() else { break };
                    let sent = Instant::now();
                    connection.call(&request).await?;
                    times.push(sent.elapsed().as_secs_f64());
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    local.await;
    let took = began.elapsed();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    Ok(Figures::of(times, took))
}
