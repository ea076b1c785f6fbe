//! `stele put`: a directory into a store. What is there already with the same text is left alone, so that a second
//! run, or one after a break, does only what is left to do.

use std::collections::HashMap;

use serde_json::{Value, json};
use stele_client::{Client, ClientError, Memory, Store, Update};

use super::walk::{Found, Walk, text};
use super::{Session, resolve};
use crate::cli::Put;
use crate::failure::{Class, class, fail};
use crate::output::{Report, cell, complain, count, progress};

/// What becomes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Create,
    Update,
    Unchanged,
}

impl Step {
    fn word(self, dry_run: bool) -> &'static str {
        match (self, dry_run) {
            (Self::Create, true) => "would create",
            (Self::Create, false) => "created",
            (Self::Update, true) => "would update",
            (Self::Update, false) => "updated",
            (Self::Unchanged, _) => "unchanged",
        }
    }
}

pub(crate) fn put(session: &Session, args: Put) -> anyhow::Result<()> {
    let prefix = resolve::prefix(&args.target);
    let walk = Walk::below(&args.dir, &prefix, args.max_files)?;
    for unfit in &walk.unfit {
        complain(&format!("{} {}", cell(&unfit.file.display().to_string()), unfit.why));
    }
    if !walk.unfit.is_empty() && !args.skip_invalid {
        let unfit = count(walk.unfit.len(), "file", "files");
        let message =
            format!("nothing was sent: {unfit} cannot be memories, and --skip-invalid leaves them out");
        return Err(fail(Class::Refused, message));
    }
    let store = resolve::store(&session.client, &args.target.store)?;
    let there: HashMap<String, Memory> = session
        .client
        .memories(&store.id, &prefix)
        .map(|memory| memory.map(|memory| (memory.path.clone(), memory)))
        .collect::<Result<_, _>>()?;
    let plan: Vec<_> = walk.found.iter().map(|found| (found, there.get(found.path.as_str()))).collect();
    let mut report = Report::default();
    let failures = carry_out(session, &store, &plan, args.dry_run, &mut report)?;
    let taken = |found: &Found| !failures.contains_key(found.path.as_str());
    let steps = |step| {
        let done = plan.iter().filter(|(found, there)| step_for(found, *there) == step && taken(found));
        done.count()
    };
    let (created, updated) = (steps(Step::Create), steps(Step::Update));
    let summary = format!(
        "{}{created} created, {updated} updated, {} unchanged, {} left out, {} failed",
        if args.dry_run { "dry run: " } else { "" },
        steps(Step::Unchanged),
        walk.unfit.len(),
        failures.len()
    );
    if session.json {
        let files: Vec<Value> =
            plan.iter().map(|(found, there)| row(found, step_for(found, *there), &failures)).collect();
        report.json(&json!({"data": files, "dry_run": args.dry_run, "left_out": walk.unfit.len()}));
    } else {
        report.line(&summary);
    }
    let first = plan.iter().find_map(|(found, _)| failures.get(found.path.as_str()));
    match first.map(|(class, _)| *class) {
        Some(class) => {
            Err(fail(class, format!("{} not taken", count(failures.len(), "file was", "files were"))))
        }
        None => report.end(),
    }
}

fn row(found: &Found, step: Step, failures: &HashMap<&str, (Class, String)>) -> Value {
    let path = found.path.as_str();
    let error = failures.get(path).map(|(_, message)| message);
    let step = match step {
        _ if error.is_some() => "failed",
        Step::Create => "create",
        Step::Update => "update",
        Step::Unchanged => "unchanged",
    };
    json!({"path": path, "step": step, "content_sha256": found.sha256, "content_size_bytes": found.size_bytes, "error": error})
}

fn step_for(found: &Found, there: Option<&Memory>) -> Step {
    match there {
        None => Step::Create,
        Some(memory) if memory.content_sha256 == found.sha256 => Step::Unchanged,
        Some(_) => Step::Update,
    }
}

/// Sends what is to be sent. One file's refusal is no other's; without a server, or without the right, all ends.
fn carry_out<'p>(
    session: &Session,
    store: &Store,
    plan: &[(&'p Found, Option<&Memory>)],
    dry_run: bool,
    report: &mut Report,
) -> anyhow::Result<HashMap<&'p str, (Class, String)>> {
    let bar = progress(plan.len() as u64);
    let mut failures = HashMap::new();
    for (found, there) in plan {
        let step = step_for(found, *there);
        let sent = if dry_run { Ok(()) } else { send(&session.client, store, found, *there, step) };
        let path = found.path.as_str();
        match sent {
            Ok(()) if step == Step::Unchanged || session.json => {}
            Ok(()) => bar.suspend(|| report.line(&format!("{} {}:{path}", step.word(dry_run), store.name))),
            Err(error) => {
                let class = class(&error);
                if matches!(class, Class::NoServer | Class::Unavailable | Class::Forbidden) {
                    bar.finish_and_clear();
                    return Err(error.context("stopped; a second run goes on where this one ended"));
                }
                bar.suspend(|| complain(&format!("{path}: {error:#}")));
                failures.insert(path, (class, format!("{error:#}")));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(failures)
}

fn send(
    client: &Client,
    store: &Store,
    found: &Found,
    there: Option<&Memory>,
    step: Step,
) -> anyhow::Result<()> {
    if step == Step::Unchanged {
        return Ok(());
    }
    let text = text(&found.file).map_err(|why| fail(Class::Refused, why))?;
    let sent: Result<Memory, ClientError> = match there {
        None => client.memory_create(&store.id, found.path.as_str(), &text),
        // Over what was listed: a text that somebody wrote meanwhile is not ours to replace unseen.
        Some(memory) => {
            let expected = Some(memory.content_sha256.as_str());
            let update = Update { content: Some(&text), expected, ..Update::default() };
            client.memory_update(&store.id, &memory.id, &update)
        }
    };
    sent?;
    Ok(())
}
