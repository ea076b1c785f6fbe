//! `stele copy`: stores from one live server to another, both spoken with as the Anthropic dialect's own clients do.
//!
//! A copy is known by a mark in its metadata, the id of what it is of, so that a second run finds it and does only what
//! is missing. Everything is looked at before the first write. Routes of Stele's own are used for nothing but a word on
//! what the dialect cannot carry.

mod heads;
mod history;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stele_client::{Client, ClientError, Memory, Store};

use crate::cli::Copy;
use crate::connect::client_pair;
use crate::failure::{Class, fail};
use crate::ids::store_uuid;
use crate::output::{Report, cell, complain, count};

/// The metadata that says what a store is a copy of.
const COPIED_FROM: &str = "stele.copied_from";
/// Most pairs of metadata of a store. spec/anthropic.md 5.
const METADATA_PAIRS: usize = 16;
/// Most bytes of a memory, and memories of a store, that every server of the dialect is said to take. The same place.
const MEMORY_BYTES: u64 = 102_400;
const MEMORIES: usize = 10_000;

/// Two servers and what is asked for.
struct Between<'a> {
    from: Client,
    to: Client,
    args: &'a Copy,
}

/// A store with its copy, where there is one.
struct Pair {
    source: Store,
    target: Option<Store>,
}

/// What is to be done for one store, looked at but not begun.
enum Plan {
    Heads(heads::Plan),
    History(history::Plan),
}

/// What stands in the way of a copy.
#[derive(Default)]
struct Problems {
    /// What the other server does not take: --partial leaves it out.
    caps: Vec<String>,
    /// What was changed in the copy.
    conflicts: Vec<String>,
}

/// What was done, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    created: usize,
    updated: usize,
    deleted: usize,
    unchanged: usize,
    skipped: usize,
}

pub(super) fn copy(args: &Copy) -> anyhow::Result<()> {
    let sides = [(args.from.as_str(), args.from_key_env.as_deref()), (&args.to, args.to_key_env.as_deref())];
    let [from, to] = client_pair(sides)?;
    let between = Between { from: from.patient(), to: to.patient(), args };
    let pairs = between.pairs()?;
    let mut problems = Problems::default();
    let mut plans = Vec::new();
    for pair in pairs {
        judge_store(&pair, &mut problems);
        let plan = match args.history {
            true => Plan::History(history::plan(&between, &pair, &mut problems)?),
            false => Plan::Heads(heads::plan(&between, &pair, &mut problems)?),
        };
        plans.push((pair, plan));
    }
    for problem in problems.caps.iter().chain(&problems.conflicts) {
        complain(problem);
    }
    if !problems.conflicts.is_empty() {
        let number = count(problems.conflicts.len(), "conflict", "conflicts");
        let message = format!(
            "nothing was written: {number} with the copy; --on-conflict skip leaves it as it is, --on-conflict overwrite \
             takes the store's text"
        );
        return Err(fail(Class::Conflict, message));
    }
    if !problems.caps.is_empty() && !args.partial {
        let message =
            "nothing was written: the other server does not take all of it, and --partial leaves that out";
        return Err(fail(Class::Refused, message));
    }
    let mut report = Report::default();
    let mut rows = Vec::new();
    for (pair, plan) in plans {
        let tally = between.carry_out(&pair, plan)?;
        rows.push(between.report(&pair, tally, &mut report));
    }
    if args.json {
        report.json(&json!({"data": rows, "left_out": problems.caps.len(), "dry_run": args.dry_run}));
    }
    report.end()
}

impl Between<'_> {
    /// The stores that are asked for, each with its copy.
    fn pairs(&self) -> anyhow::Result<Vec<Pair>> {
        let named = &self.args.stores;
        let all = self.from.stores(!named.is_empty()).collect::<Result<Vec<_>, _>>()?;
        let sources = if named.is_empty() { all } else { chosen(&all, named)? };
        let copies: BTreeMap<String, Store> = self
            .to
            .stores(true)
            .filter_map(|store| match store {
                Ok(store) => Some(Ok((store.metadata.get(COPIED_FROM)?.clone(), store))),
                Err(error) => Some(Err(error)),
            })
            .collect::<Result<_, ClientError>>()?;
        let pair = |source: Store| Pair { target: copies.get(&source.id).cloned(), source };
        // What was once copied here from a store of this very server is a copy, and no source by itself.
        let own = named.is_empty() && stele_client::same_origin(self.from.url(), self.to.url());
        let sources = sources.into_iter().filter(|store| !own || !store.metadata.contains_key(COPIED_FROM));
        Ok(sources.map(pair).collect())
    }

    fn carry_out(&self, pair: &Pair, plan: Plan) -> anyhow::Result<Tally> {
        if self.args.dry_run {
            return Ok(match plan {
                Plan::Heads(plan) => plan.tally(),
                Plan::History(plan) => plan.tally(),
            });
        }
        let target = match &pair.target {
            Some(target) => target.clone(),
            None => self.to.store_create(&twin(&pair.source))?,
        };
        let done = match plan {
            Plan::Heads(plan) => plan.carry_out(self, &pair.source, &target),
            Plan::History(plan) => plan.carry_out(self, &pair.source, &target),
        };
        done.map_err(|error| {
            error.context(format!(
                "{} is not copied wholly; the same command goes on with it",
                pair.source.name
            ))
        })
    }

    fn report(&self, pair: &Pair, tally: Tally, report: &mut Report) -> Value {
        let Tally { created, updated, deleted, unchanged, skipped } = tally;
        if !self.args.json {
            let dry = if self.args.dry_run { "dry run: " } else { "" };
            report.line(&format!(
                "{dry}{}: {created} created, {updated} updated, {deleted} deleted, {unchanged} unchanged, {skipped} skipped",
                cell(&pair.source.name)
            ));
        }
        if let Some(lost) = self.summaries(&pair.source) {
            let summaries = count(lost, "summary", "summaries");
            complain(&format!(
                "{}: {summaries} stayed behind, which the Anthropic dialect does not carry",
                pair.source.name
            ));
        }
        json!({
            "from": pair.source.id, "name": pair.source.name, "created": created, "updated": updated, "deleted": deleted,
            "unchanged": unchanged, "skipped": skipped,
        })
    }

    /// How many summaries a store of a Stele has; any other server has none.
    fn summaries(&self, source: &Store) -> Option<usize> {
        let summaries = self.from.summaries(&store_uuid(&source.id)?).ok()?;
        let number = summaries.iter().filter(|one| !one.summary.is_empty()).count();
        (number > 0).then_some(number)
    }

    /// Makes a memory in the copy. Where an answer was lost and the request was repeated, it is there already.
    fn create(&self, target: &Store, path: &str, content: &str, sha256: &str) -> anyhow::Result<Memory> {
        match self.to.memory_create(&target.id, path, content) {
            Err(ClientError::Refused { status: 409, code, message }) => {
                match self.to.memory_at(&target.id, path)?.filter(|memory| memory.content_sha256 == sha256) {
                    Some(memory) => Ok(memory),
                    None => Err(ClientError::Refused { status: 409, code, message }.into()),
                }
            }
            done => Ok(done?),
        }
    }
}

/// The stores of these names or ids.
fn chosen(stores: &[Store], named: &[String]) -> anyhow::Result<Vec<Store>> {
    let mut chosen: Vec<Store> = Vec::new();
    for wanted in named {
        let mut found: Vec<&Store> =
            stores.iter().filter(|store| store.id == *wanted || store.name == *wanted).collect();
        // A copy within one server has the name of what it is of.
        if found.len() > 1 {
            found.retain(|store| !store.metadata.contains_key(COPIED_FROM));
        }
        match found.as_slice() {
            [] => return Err(fail(Class::NotFound, format!("there is no store {wanted:?} to copy"))),
            [one] if chosen.iter().any(|other| other.id == one.id) => {}
            [one] => chosen.push((*one).clone()),
            several => {
                let ids: Vec<&str> = several.iter().map(|store| store.id.as_str()).collect();
                let message =
                    format!("several stores are called {wanted:?}: name one by its id: {}", ids.join(", "));
                return Err(fail(Class::Usage, message));
            }
        }
    }
    Ok(chosen)
}

fn judge_store(pair: &Pair, problems: &mut Problems) {
    let name = &pair.source.name;
    match &pair.target {
        Some(target) if target.archived_at.is_some() => {
            problems.conflicts.push(format!("{name}: its copy {} is archived, and takes nothing", target.id));
        }
        None if pair.source.metadata.len() >= METADATA_PAIRS => {
            problems.conflicts.push(format!(
                "{name}: it has {METADATA_PAIRS} pairs of metadata, so that its copy cannot say what it is of: remove one"
            ));
        }
        _ => {}
    }
}

/// The body of a request for the copy of a store.
fn twin(source: &Store) -> Value {
    let mut metadata = source.metadata.clone();
    metadata.insert(COPIED_FROM.into(), source.id.clone());
    json!({"name": source.name, "description": source.description, "metadata": metadata})
}
