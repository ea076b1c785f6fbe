//! `stele sync`: stores as ordinary folders. The work is `stele-sync`'s; here are its words and its exit code.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use stele_sync::{Done, Event, Item, Left, Moment, Options, Report as Pass, Sync, SyncError, watch};

use crate::attached::{Attached, Attachments};
use crate::cli::{ClientFlags, SyncFolder};
use crate::failure::{Class, fail};
use crate::output::{Report, cell, complain, count};
use crate::signals;

/// How often a pass is repeated because somebody else was quicker.
const PASSES: usize = 3;

pub(crate) fn sync(flags: &ClientFlags, args: &SyncFolder) -> anyhow::Result<()> {
    if args.directories.session.is_none() && args.directories.store.is_empty() {
        return Err(fail(Class::Usage, "name what to sync: --session SESSION DIR, or --store STORE DIR"));
    }
    let found = Attachments::find(flags, &args.directories)?;
    let client = Arc::new(found.client());
    let mut folders = Vec::new();
    for store in &found.stores {
        let options = Options {
            dir: if found.below { args.dir.join(&store.directory) } else { args.dir.clone() },
            store: store.id.clone(),
            store_uuid: store.uuid.clone(),
            access: store.access,
            adopt: args.adopt,
            delete_all: args.delete_all,
            dry_run: args.dry_run,
        };
        let sync = Sync::open(Arc::clone(&client), options).map_err(classed)?;
        folders.push((store.clone(), sync));
    }
    let teller = Teller { json: flags.json, dry_run: args.dry_run };
    if args.watch { watch_all(folders, &teller) } else { once(folders, &teller) }
}

/// The class of what stops a sync.
fn classed(error: SyncError) -> anyhow::Error {
    let class = match &error {
        SyncError::Client(_) => return anyhow::Error::from(error),
        SyncError::StoreGone { .. } => Class::NotFound,
        SyncError::NotEmpty(_) | SyncError::OtherStore { .. } | SyncError::InUse(_) => Class::Conflict,
        SyncError::Strange(_) | SyncError::Damaged { .. } | SyncError::Io { .. } => Class::Other,
    };
    fail(class, error.to_string())
}

fn once(folders: Vec<(Attached, Sync)>, teller: &Teller) -> anyhow::Result<()> {
    let mut report = Report::default();
    let (mut total, mut rows) = (Totals::default(), Vec::new());
    for (store, mut sync) in folders {
        for round in 1..=PASSES {
            let mut pass = sync.pass(Moment::AtRest).map_err(classed)?;
            let again = pass.raced() && round < PASSES;
            if again {
                pass.items.retain(|item| item.done != Done::Left(Left::Raced));
            }
            for item in &pass.items {
                match teller.json {
                    true => rows.push(row(&store, item)),
                    false => teller.tell(&store, item, &mut report),
                }
            }
            total.add(&pass);
            if !again {
                break;
            }
        }
    }
    if teller.json {
        report.json(&json!({"data": rows, "same": total.same, "dry_run": teller.dry_run}));
    } else {
        report.line(&total.line(teller.dry_run));
    }
    total.judge(teller.dry_run)?;
    report.end()
}

/// Each folder on a thread of its own, until SIGTERM or SIGINT.
fn watch_all(folders: Vec<(Attached, Sync)>, teller: &Teller) -> anyhow::Result<()> {
    let stops = signals::on_stop(folders.len())?;
    let report = Mutex::new(Report::default());
    let ended: Vec<Result<(), SyncError>> = std::thread::scope(|scope| {
        let start = |((store, mut sync), stop): ((Attached, Sync), Receiver<()>)| {
            let report = &report;
            scope.spawn(move || watch(&mut sync, stop, |event| teller.event(&store, &event, report)))
        };
        let threads: Vec<_> = folders.into_iter().zip(stops).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread does not panic")).collect()
    });
    ended.into_iter().collect::<Result<(), _>>().map_err(classed)?;
    report.into_inner().expect("no thread panicked").end()
}

/// Says what happens, to a person or a program.
struct Teller {
    json: bool,
    dry_run: bool,
}

impl Teller {
    fn event(&self, store: &Attached, event: &Event<'_>, report: &Mutex<Report>) {
        let mut report = report.lock().expect("no thread panicked");
        match event {
            Event::Passed(pass) => {
                for item in &pass.items {
                    match self.json {
                        true => report.json(&row(store, item)),
                        false => self.tell(store, item, &mut report),
                    }
                }
            }
            Event::Away(error) => complain(&format!("{error}; trying again")),
            Event::Back => complain("the server answers again"),
        }
    }

    /// What was done goes to standard output, what a person should look at to standard error.
    fn tell(&self, store: &Attached, item: &Item, report: &mut Report) {
        let place = format!("{}:{}", cell(&store.name), cell(&item.path));
        let what = match &item.done {
            Done::Displaced(_) if self.dry_run => {
                "changed on both sides: the store's text would be taken, the local one kept aside".into()
            }
            Done::Displaced(kept) => {
                format!(
                    "changed on both sides: the store's text was taken, the local one is {}",
                    kept.display()
                )
            }
            Done::Left(left) => why(left),
            done => return report.line(&format!("{} {place}", words(done, self.dry_run))),
        };
        complain(&format!("{place}: {}", cell(&what)));
    }
}

fn words(done: &Done, dry_run: bool) -> String {
    let (would, was) = match done {
        Done::Pulled | Done::Displaced(_) | Done::Left(_) => ("pull", "pulled"),
        Done::RemovedHere => ("remove here", "removed here"),
        Done::Created => ("create", "created"),
        Done::Updated => ("update", "updated"),
        Done::DeletedThere => ("delete in the store", "deleted in the store"),
        Done::Moved(from) => {
            let would = if dry_run { "would move" } else { "moved" };
            return format!("{would} {} to", cell(from));
        }
    };
    if dry_run { format!("would {would}") } else { was.to_owned() }
}

fn why(left: &Left) -> String {
    match left {
        Left::ReadOnly => "changed here, and not sent: the store is read-only".into(),
        Left::Unfit(why) => format!("not sent: {why}"),
        Left::Refused(why) => format!("refused by the server: {why}"),
        Left::HeldBack => {
            "gone here, and kept in the store for now: many are gone at once. Sync again for the next ones, or \
             --delete-all"
                .into()
        }
        Left::Settling => "just changed; the next sync takes it".into(),
        Left::Blocked(why) => format!("not pulled: {why}"),
        Left::Raced => "changed by others meanwhile; sync again".into(),
    }
}

fn row(store: &Attached, item: &Item) -> Value {
    let detail = match &item.done {
        Done::Displaced(kept) => Some(kept.display().to_string()),
        Done::Moved(from) => Some(from.clone()),
        Done::Left(left) => Some(why(left)),
        _ => None,
    };
    json!({"memory_store_id": store.id, "path": item.path, "done": item.done.name(), "detail": detail})
}

#[derive(Default)]
struct Totals {
    pulled: usize,
    sent: usize,
    removed: usize,
    deleted: usize,
    displaced: usize,
    held_back: usize,
    left: usize,
    same: usize,
}

impl Totals {
    fn add(&mut self, pass: &Pass) {
        self.same = self.same.max(pass.same);
        for item in &pass.items {
            let of = match &item.done {
                Done::Pulled => &mut self.pulled,
                Done::Displaced(_) => &mut self.displaced,
                Done::RemovedHere => &mut self.removed,
                Done::Created | Done::Updated | Done::Moved(_) => &mut self.sent,
                Done::DeletedThere => &mut self.deleted,
                Done::Left(Left::HeldBack | Left::Raced) => &mut self.held_back,
                Done::Left(_) => &mut self.left,
            };
            *of += 1;
        }
    }

    fn line(&self, dry_run: bool) -> String {
        format!(
            "{}{} pulled, {} sent, {} removed here, {} deleted in the store, {} changed on both sides, {} left, {} the same",
            if dry_run { "dry run: " } else { "" },
            self.pulled,
            self.sent,
            self.removed,
            self.deleted,
            self.displaced,
            self.left + self.held_back,
            self.same
        )
    }

    /// # Errors
    /// The two sides are not the same now, or a local text had to give way.
    fn judge(&self, dry_run: bool) -> anyhow::Result<()> {
        if dry_run {
            return Ok(());
        }
        let files = |number| count(number, "file", "files");
        if self.displaced > 0 {
            return Err(fail(Class::Conflict, format!("{} changed on both sides", files(self.displaced))));
        }
        if self.held_back > 0 {
            return Err(fail(Class::Conflict, format!("{} not settled yet", files(self.held_back))));
        }
        if self.left > 0 {
            return Err(fail(
                Class::Refused,
                format!("{} cannot be the same on both sides", files(self.left)),
            ));
        }
        Ok(())
    }
}
