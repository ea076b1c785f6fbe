//! A PostgreSQL of their own for tests: started by the test process as an unprivileged user, stopped and removed when
//! that process ends, however it ends.
//!
//! It does not survive a power cut (`fsync=off`) and its databases sort by the rules of a language (ICU, `en-US`), so
//! that whatever relies on the order of bytes has to say so.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How long the server may take to start or stop on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const PORT: u16 = 5432;
const USER: &str = "stele";

/// A running cluster.
pub struct Cluster {
    dir: PathBuf,
    programs: PathBuf,
    settings: Vec<String>,
    /// Dropping the guard's standard input makes it stop the server and remove the directory.
    guard: Mutex<Option<Child>>,
    databases: AtomicU32,
    template: OnceLock<String>,
}

/// A database of its own, dropped with its connections when this value is.
pub struct Database {
    cluster: &'static Cluster,
    name: String,
}

/// The user and group that the server runs as, if this process is root's.
fn unprivileged() -> Option<(u32, u32)> {
    let root = fs::metadata("/proc/self").expect("a process has a /proc entry").uid() == 0;
    root.then(|| {
        let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let ids = |user: &str| {
            let line = passwd.lines().find(|line| line.starts_with(&format!("{user}:")))?;
            let mut fields = line.split(':').skip(2);
            Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
        };
        ids("postgres").or_else(|| ids("nobody")).unwrap_or((65_534, 65_534))
    })
}

/// Where the server's programs are: the newest version that the system has.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions
        .filter(|entry| entry.path().join("bin/initdb").exists())
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .max();
    match newest {
        Some(version) => format!("/usr/lib/postgresql/{version}/bin").into(),
        None => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).find(|dir| dir.join("initdb").exists()).expect(
                "these tests start a PostgreSQL of their own, and its programs are missing: \
                 apt-get install postgresql",
            )
        }
    }
}

impl Cluster {
    /// Makes and starts a cluster with these extra settings (`name=value`).
    ///
    /// # Panics
    /// The server's programs are missing or it does not start.
    pub fn start(settings: &[&str]) -> Self {
        let programs = programs();
        let temp = tempfile::Builder::new().prefix("stele-pg-").tempdir_in("/tmp").expect("a directory");
        // The guard removes it: a process that is killed cannot.
        let dir = temp.keep();
        if let Some((uid, gid)) = unprivileged() {
            chown(&dir, Some(uid), Some(gid)).expect("root may give a directory away");
        }
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("a mode can be set");
        let cluster = Self {
            dir,
            programs,
            settings: settings.iter().map(|&setting| setting.to_owned()).collect(),
            guard: Mutex::new(None),
            databases: AtomicU32::new(0),
            template: OnceLock::new(),
        };
        cluster.init();
        cluster.run();
        cluster
    }

    /// The cluster that the tests of this process share, with room for their many connections.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&["max_connections=400", "shared_buffers=64MB"]))
    }

    fn init(&self) {
        let mut initdb = self.as_server(&self.programs.join("initdb"));
        initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "-U", USER]);
        initdb.args(["--locale-provider=icu", "--icu-locale=en-US", "-D"]).arg(self.data());
        succeed(initdb.output().expect("initdb runs"), "initdb");
    }

    /// A command that runs as the server's user.
    fn as_server(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((uid, gid)) = unprivileged() {
            command.uid(uid).gid(gid);
        }
        command.current_dir(&self.dir).env("LC_ALL", "C.UTF-8");
        command
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// All files of the cluster.
    pub fn data_dir(&self) -> PathBuf {
        self.data()
    }

    /// The log that the server writes.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Starts the server of a cluster that stands; waits until it answers.
    ///
    /// # Panics
    /// It does not start.
    pub fn run(&self) {
        let mut guard = self.guard.lock().expect("no panic under the lock");
        assert!(guard.is_none(), "the cluster runs already");
        // The guard ends with this process, whatever ends it: its standard input closes.
        let script = r#"
            "$@" >>log 2>&1 </dev/null &
            server=$!
            read -r how
            kill -s "${how:-QUIT}" $server
            wait $server
            [ -n "$how" ] || rm -rf "$DIR"
        "#;
        let mut command = self.as_server(Path::new("/bin/sh"));
        command.env("DIR", &self.dir).args(["-c", script, "guard"]).arg(self.programs.join("postgres"));
        command.arg("-D").arg(self.data()).arg("-k").arg(&self.dir);
        let own = ["listen_addresses=", "fsync=off", "full_page_writes=off", "log_min_messages=warning"];
        for setting in own.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        *guard = Some(command.spawn().expect("a shell runs"));
        drop(guard);
        let since = Instant::now();
        while !self.psql("postgres", "SELECT 1").status.success() {
            assert!(since.elapsed() < PATIENCE, "the server does not start:\n{}", self.log());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Stops the server by this signal: `TERM` waits for its clients, `INT` sends them away, `QUIT` is a crash.
    ///
    /// # Panics
    /// It does not run.
    pub fn stop(&self, signal: &str) {
        use io::Write;
        let mut guard = self.guard.lock().expect("no panic under the lock").take().expect("it runs");
        let mut input = guard.stdin.take().expect("the guard has a standard input");
        writeln!(input, "{signal}").expect("the guard listens");
        guard.wait().expect("the guard ends");
    }

    /// The directory of the server's socket.
    pub fn socket_dir(&self) -> &Path {
        &self.dir
    }

    /// How to reach the database of this name.
    pub fn url(&self, database: &str) -> String {
        let host = self.dir.display().to_string().replace('/', "%2F");
        format!("postgres://{USER}@{host}:{PORT}/{database}")
    }

    fn psql(&self, database: &str, sql: &str) -> Output {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", USER, "-d", database, "-c", sql]);
        psql.arg("-h").arg(&self.dir).stdin(Stdio::null()).output().expect("psql runs")
    }

    /// Runs SQL in a database; returns what it prints.
    ///
    /// # Panics
    /// The server refuses it.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output = succeed(self.psql(database, sql), sql);
        String::from_utf8(output.stdout).expect("psql prints UTF-8").trim().to_owned()
    }

    fn free_name(&self) -> String {
        format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed))
    }

    /// An empty database, made with these options of `CREATE DATABASE`.
    pub fn empty(&'static self, options: &str) -> Database {
        let name = self.free_name();
        self.sql("postgres", &format!("CREATE DATABASE {name} {options}"));
        Database { cluster: self, name }
    }

    /// A copy of the template, which `migrate` makes of an empty database when it is first asked for.
    pub fn migrated(&'static self, migrate: impl FnOnce(&str)) -> Database {
        let template = self.template.get_or_init(|| {
            self.sql("postgres", "CREATE DATABASE migrated");
            migrate(&self.url("migrated"));
            "migrated".to_owned()
        });
        self.empty(&format!("TEMPLATE {template}"))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        match self.guard.lock().expect("no panic under the lock").take() {
            Some(mut guard) => {
                drop(guard.stdin.take());
                let _ = guard.wait();
            }
            None => {
                let _ = fs::remove_dir_all(&self.dir);
            }
        }
    }
}

impl Database {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to reach it.
    pub fn url(&self) -> String {
        self.cluster.url(&self.name)
    }

    /// Runs SQL in it; returns what it prints.
    ///
    /// # Panics
    /// The server refuses it.
    pub fn sql(&self, sql: &str) -> String {
        self.cluster.sql(&self.name, sql)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // A cluster that a test stopped takes its databases with it.
        self.cluster.psql("postgres", &format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

fn succeed(output: Output, what: &str) -> Output {
    assert!(output.status.success(), "{what} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    output
}
