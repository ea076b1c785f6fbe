//! `stele backup`: through the server that holds the database, else on the database itself.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use stele_client::Client;
use stele_core::backup::{BackupStanding, Keeper, Progress};
use stele_core::id::BackupId;
use store_sqlite::{FILE, OpenError};

use super::keeper::BackupKeeper;
use super::make::host;
use super::manifest::verify;
use crate::backend::Backend;
use crate::cli::{Backup, BackupAction, CreateBackup, Installed, ServeFlags};
use crate::config::{Config, process_env};
use crate::connect::{client, client_at};
use crate::failure::{Class, fail};
use crate::output::{Report, count, print, print_json, print_table, time};

/// How often something under way is asked after.
const EVERY: Duration = Duration::from_millis(100);

pub(crate) fn run(given: Backup) -> anyhow::Result<()> {
    match given.action {
        Some(BackupAction::Create(CreateBackup { to, of })) => create(&to, &of),
        Some(BackupAction::List(of)) => list(&of),
        Some(BackupAction::Verify { paths, of }) => verify_all(paths, &of),
        Some(BackupAction::Scrub { backups, of }) => scrub(&backups, &of),
        Some(BackupAction::Forget { backup, of }) => forget(&backup, &of),
        None => match given.to {
            Some(to) => create(&to, &given.of),
            None => Err(fail(Class::Usage, "say where the backup shall be kept: stele backup --to DIR")),
        },
    }
}

/// Whoever does the work.
enum Hands {
    /// The server that holds the database.
    Server(Client),
    /// This process, which opened the database of no server, or of servers that share it.
    Own(Box<Own>),
}

struct Own {
    runtime: tokio::runtime::Runtime,
    keeper: std::sync::Arc<BackupKeeper>,
    backend: Option<Backend>,
}

/// A managed backup as the API spells it.
struct Managed(Value);

impl Managed {
    fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    fn number(&self, field: &str) -> u64 {
        self.0[field].as_u64().unwrap_or_default()
    }

    fn is(&self, named: &str) -> bool {
        let path = Path::new(self.text("path"));
        self.text("backup_id") == named
            || path == Path::new(named)
            || std::fs::canonicalize(named).is_ok_and(|named| named == path)
    }

    /// Whether its files are in reach of this process.
    fn is_missing(&self) -> bool {
        self.text("host") == host() && !Path::new(self.text("path")).exists()
    }
}

fn managed(standing: BackupStanding) -> Managed {
    let BackupStanding { record, unapplied } = standing;
    Managed(json!({
        "backup_id": record.id.to_string(),
        "host": record.host,
        "path": record.path,
        "made_at": record.made_at.to_string(),
        "versions": record.versions,
        "bytes": record.bytes,
        "unapplied_redactions": unapplied,
    }))
}

impl Hands {
    fn of(installed: &Installed) -> anyhow::Result<Self> {
        let flags = &installed.client;
        if flags.url.is_some() || flags.profile.is_some() {
            return Ok(Self::Server(match &installed.place.data_dir {
                Some(dir) => client_at(flags, dir)?,
                None => client(flags)?,
            }));
        }
        let place = &installed.place;
        let (data_dir, database_url) = (place.data_dir.clone(), place.database_url.clone());
        let mut config =
            Config::load(&ServeFlags { data_dir, database_url, ..ServeFlags::default() }, &process_env)?;
        if place.data_dir.is_some() {
            config.database_url = None;
        }
        if config.database_url.is_some() {
            return Ok(Self::Own(Box::new(Own::open(&config)?)));
        }
        let dir = &config.data_dir;
        match store_sqlite::is_free(dir) {
            Err(OpenError::InUse { .. }) => Ok(Self::Server(client_at(flags, dir)?)),
            Err(error) => Err(error.into()),
            Ok(()) if dir.join(FILE).exists() => Ok(Self::Own(Box::new(Own::open(&config)?))),
            Ok(()) if place.data_dir.is_none() && process_env("STELE_URL").is_some() => {
                Ok(Self::Server(client(flags)?))
            }
            Ok(()) => Err(OpenError::NoDatabase(dir.clone()).into()),
        }
    }

    fn list(&self) -> anyhow::Result<Vec<Managed>> {
        match self {
            Self::Server(client) => {
                let mut answer = client.get("/stele/v1/backups")?;
                let Value::Array(all) = answer["backups"].take() else { return Ok(Vec::new()) };
                Ok(all.into_iter().map(Managed).collect())
            }
            Self::Own(own) => Ok(own.runtime.block_on(own.keeper.list())?.into_iter().map(managed).collect()),
        }
    }

    fn create(&self, to: &Path) -> anyhow::Result<Managed> {
        let id = match self {
            Self::Server(client) => {
                let begun = client.post("/stele/v1/backups", &json!({"to": to.to_str()}))?;
                begun["backup_id"].as_str().unwrap_or_default().to_owned()
            }
            Self::Own(own) => own.runtime.block_on(own.keeper.begin(to.to_owned()))?.to_string(),
        };
        self.wait(&id).context("no backup was made")?;
        self.list()?
            .into_iter()
            .find(|backup| backup.is(&id))
            .context("the backup was made and then forgotten")
    }

    fn scrub(&self, id: &str) -> anyhow::Result<()> {
        match self {
            Self::Server(client) => {
                client.post(&format!("/stele/v1/backups/{id}/scrub"), &json!({}))?;
            }
            Self::Own(own) => own.runtime.block_on(own.keeper.begin_scrub(parsed(id)?))?,
        }
        self.wait(id)
    }

    /// Waits for what has begun.
    fn wait(&self, id: &str) -> anyhow::Result<()> {
        loop {
            let failed = match self {
                Self::Server(client) => {
                    let state = client.get(&format!("/stele/v1/backups/{id}"))?;
                    match state["state"].as_str() {
                        Some("made") => return Ok(()),
                        Some("failed") => Some(state["reason"].as_str().unwrap_or_default().to_owned()),
                        _ => None,
                    }
                }
                Self::Own(own) => match own.keeper.progress(parsed(id)?) {
                    Some(Progress::Done) | None => return Ok(()),
                    Some(Progress::Failed(reason)) => Some(reason),
                    Some(Progress::Making | Progress::Scrubbing) => None,
                },
            };
            if let Some(reason) = failed {
                bail!("{reason}");
            }
            std::thread::sleep(EVERY);
        }
    }

    fn forget(&self, id: &str) -> anyhow::Result<()> {
        match self {
            Self::Server(client) => drop(client.delete(&format!("/stele/v1/backups/{id}"))?),
            Self::Own(own) => own.runtime.block_on(own.keeper.forget(parsed(id)?))?,
        }
        Ok(())
    }

    /// The backup that is meant by an id or a directory.
    fn find(&self, named: &str) -> anyhow::Result<Managed> {
        let found = self.list()?.into_iter().find(|backup| backup.is(named));
        found
            .ok_or_else(|| fail(Class::NotFound, format!("{named} is no backup that this installation made")))
    }
}

fn parsed(id: &str) -> anyhow::Result<BackupId> {
    BackupId::parse(id).context("the id of a backup is a UUID")
}

impl Own {
    fn open(config: &Config) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let backend = runtime.block_on(async {
            if let Some(url) = &config.database_url {
                anyhow::ensure!(
                    store_postgres::standing(url).await?.applied > 0,
                    fail(Class::NotFound, format!("there is no Stele database at {url}"))
                );
            }
            Backend::open(config).await
        })?;
        let keeper = BackupKeeper::new(backend.source(config));
        Ok(Self { runtime, keeper, backend: Some(backend) })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(backend) = self.backend.take() {
            // What was asked for is done; a database that cannot be closed well is closed all the same.
            let _ = self.runtime.block_on(backend.close());
        }
    }
}

fn create(to: &Path, of: &Installed) -> anyhow::Result<()> {
    let hands = Hands::of(of)?;
    let mut to = std::path::absolute(to)?;
    let is_here = match &hands {
        Hands::Server(client) => client.is_local(),
        Hands::Own(_) => true,
    };
    let was_there = to.exists();
    if is_here {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&to);
        made.with_context(|| format!("cannot make {}", to.display()))?;
        to = std::fs::canonicalize(&to)?;
    }
    let made = hands.create(&to).inspect_err(|_| {
        if is_here && !was_there {
            // Only if it is empty.
            let _ = std::fs::remove_dir(&to);
        }
    })?;
    if of.client.json {
        return print_json(&made.0);
    }
    let versions = count(usize::try_from(made.number("versions"))?, "version", "versions");
    print(&format!("{}: made and checked, {versions}", made.text("path")))
}

fn list(of: &Installed) -> anyhow::Result<()> {
    let all = Hands::of(of)?.list()?;
    if of.client.json {
        let all: Vec<Value> = all.into_iter().map(|backup| backup.0).collect();
        return print_json(&json!({"backups": all}));
    }
    let own = host();
    let rows: Vec<[String; 6]> = all
        .iter()
        .map(|backup| {
            let place = match backup.text("host") {
                host if host == own => backup.text("path").to_owned(),
                host => format!("{host}:{}", backup.text("path")),
            };
            let state = match backup.number("unapplied_redactions") {
                _ if backup.is_missing() => "missing".to_owned(),
                0 => "clean".to_owned(),
                n => format!("may hold {n} redacted"),
            };
            [
                time(backup.text("made_at")),
                backup.text("backup_id").to_owned(),
                backup.number("versions").to_string(),
                backup.number("bytes").to_string(),
                state,
                place,
            ]
        })
        .collect();
    print_table(["MADE", "ID", "VERSIONS", "BYTES", "STATE", "PATH"], &rows)
}

fn verify_all(mut paths: Vec<PathBuf>, of: &Installed) -> anyhow::Result<()> {
    if paths.is_empty() {
        let own = host();
        let here = |backup: &Managed| backup.text("host") == own;
        paths = Hands::of(of)?.list()?.iter().filter(|b| here(b)).map(|b| b.text("path").into()).collect();
    }
    let mut report = Report::default();
    let mut bad = Vec::new();
    let mut found = Vec::new();
    for path in &paths {
        let shown = path.display();
        match verify(path) {
            Ok(sound) => {
                let made_at = time(&sound.manifest.made_at);
                let versions = count(usize::try_from(sound.manifest.holds.versions)?, "version", "versions");
                found.push(json!({"path": path, "sound": true}));
                if !of.client.json {
                    report.line(&format!("{shown}: sound, made {made_at}, {versions}"));
                }
            }
            Err(error) => {
                found.push(json!({"path": path, "sound": false, "reason": format!("{error:#}")}));
                bad.push(error);
            }
        }
    }
    if of.client.json {
        report.json(&json!({"backups": found}));
    }
    let in_all = bad.len();
    match bad.into_iter().next() {
        None => report.end(),
        Some(only) if in_all == 1 => Err(only),
        Some(first) => Err(first.context(format!("{in_all} of {} are not sound", paths.len()))),
    }
}

fn scrub(named: &[String], of: &Installed) -> anyhow::Result<()> {
    let hands = Hands::of(of)?;
    let wanted = match named {
        [] => hands.list()?.into_iter().filter(|b| b.number("unapplied_redactions") > 0).collect(),
        named => named.iter().map(|named| hands.find(named)).collect::<anyhow::Result<Vec<_>>>()?,
    };
    let (mut report, mut failed, mut done) = (Report::default(), None, Vec::new());
    for backup in &wanted {
        let path = backup.text("path");
        match hands.scrub(backup.text("backup_id")) {
            Ok(()) => {
                done.push(backup.0["backup_id"].clone());
                if !of.client.json {
                    report.line(&format!("{path}: rewritten; nothing redacted is left in it"));
                }
            }
            Err(error) => failed = failed.or(Some(error.context(format!("{path} was not scrubbed")))),
        }
    }
    if of.client.json {
        report.json(&json!({"scrubbed": done}));
    } else if wanted.is_empty() {
        report.line("no backup holds anything that was redacted since");
    }
    failed.map_or_else(|| report.end(), Err)
}

fn forget(named: &str, of: &Installed) -> anyhow::Result<()> {
    let hands = Hands::of(of)?;
    let backup = hands.find(named)?;
    hands.forget(backup.text("backup_id"))?;
    if of.client.json {
        return print_json(&json!({"forgotten": backup.0["backup_id"]}));
    }
    print(&format!("{}: forgotten", backup.text("path")))
}

/// The managed backups of `client`'s installation that may hold redacted text, in words; `None` where the key may not
/// ask.
pub(crate) fn holding(client: &Client) -> anyhow::Result<Option<Vec<String>>> {
    let mut answer = match client.get("/stele/v1/backups") {
        Ok(answer) => answer,
        Err(error) if matches!(error.status(), Some(403 | 404)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let Value::Array(all) = answer["backups"].take() else { return Ok(None) };
    let all = all.into_iter().map(Managed);
    let held = all.filter(|backup| backup.number("unapplied_redactions") > 0);
    let words = |backup: Managed| {
        let redactions = count(backup.number("unapplied_redactions").try_into()?, "redaction", "redactions");
        Ok(format!("{} of {} ({redactions})", backup.text("path"), time(backup.text("made_at"))))
    };
    held.map(words).collect::<anyhow::Result<_>>().map(Some)
}
