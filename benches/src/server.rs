//! A Stele server under measurement: the released binary in a process of its own.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use tempfile::TempDir;

/// A running server. Ended, and its directory removed, when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) key: String,
    /// From the start of the process until it said that it is ready.
    pub(crate) ready_after: Duration,
    dir: Option<TempDir>,
    binary: PathBuf,
}

impl Server {
    pub(crate) fn start(binary: &Path, dir: TempDir, env: &[(&str, &str)]) -> anyhow::Result<Self> {
        let data = dir.path().join("data");
        let began = Instant::now();
        let mut child = Command::new(binary)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data)
            .envs(env.iter().copied())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(dir.path().join("log"))?)
            .spawn()
            .with_context(|| format!("cannot start {}", binary.display()))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut line)?;
        let ready_after = began.elapsed();
        let address = line.trim().strip_prefix("Stele is ready at http://");
        ensure!(
            address.is_some(),
            "the server did not start: {}",
            std::fs::read_to_string(dir.path().join("log"))?
        );
        let address = address.unwrap_or_default().parse()?;
        let key = std::fs::read_to_string(data.join("admin-key"))?.trim().to_owned();
        Ok(Self { child, address, key, ready_after, dir: Some(dir), binary: binary.to_owned() })
    }

    /// Stops it and starts it again on the same data.
    pub(crate) fn restart(mut self) -> anyhow::Result<Self> {
        self.stop()?;
        let dir = self.dir.take().context("a directory")?;
        Self::start(&self.binary.clone(), dir, &[crate::NO_CAP])
    }

    /// Stops it; what it kept in `data` stays in the directory returned.
    pub(crate) fn into_dir(mut self) -> anyhow::Result<TempDir> {
        self.stop()?;
        self.dir.take().context("a directory")
    }

    /// Resident memory, in MB.
    pub(crate) fn resident_mb(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches("kB").trim().parse::<f64>()? / 1e3)
    }

    fn stop(&mut self) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        if rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_ok() {
            self.child.wait()?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that has ended already needs no stopping.
        let _ = self.stop();
    }
}
