//! Automations, their schedules and idempotency keys, as several servers on one database carry them out.

use std::sync::Arc;

use stele_core::access::Caller;
use stele_core::command::Command;
use stele_core::hash::Sha256;
use stele_core::id::TriggerId;
use stele_core::list::Created;
use stele_core::refusal::Refusal;
use stele_core::service::{Answered, Once, RunQuery, SKIPPED_STORES, Stele};
use stele_core::storage::Error;
use stele_core::work::Fields;
use stele_core::work::attachment::{Access, Wanted};
use stele_core::work::automation::{Automation, AutomationDefinition, Overlap, Timing, Trigger};
use stele_core::work::refusal::WorkRefusal;
use stele_core::work::run::{Cause, Ran, Run};
use stele_core::work::timer::Timer;

use crate::StoreFactory;
use crate::work::{admin, agent, environment, server};
use crate::world::World;

const MINUTE: i64 = 60_000_000;

fn now<T>(answered: Result<Answered<T>, Error>) -> T {
    match answered.expect("carried out") {
        Answered::Now(made) => made,
        Answered::Before(_) => panic!("answered before"),
    }
}

/// A definition that starts a session every minute, with these stores.
async fn definition(stele: &Stele, caller: &Caller, stores: Vec<Wanted>) -> AutomationDefinition {
    let agent = agent(stele, caller).await;
    let timing = Timing {
        cron: "* * * * *".into(),
        timezone: "Europe/Berlin".into(),
        catchup_secs: None,
        jitter_secs: Some(0),
        overlap: Some(Overlap::AllowAll),
        start_at: None,
        end_at: None,
    };
    AutomationDefinition {
        name: "every minute".into(),
        agent,
        agent_version: stele.agent_get(caller, agent).await.expect("there").version_id,
        environment: environment(stele, caller).await,
        prompt: "begin".into(),
        triggers: vec![Trigger { id: TriggerId::from_bytes([7; 16]), enabled: true, timing }],
        metadata: None,
        stores,
        other_defaults: Fields::new(),
    }
}

/// An automation that is active since now, at the beginning of a minute.
async fn active(stele: &Stele, caller: &Caller) -> Automation {
    let definition = definition(stele, caller, Vec::new()).await;
    let made = now(stele.automation_create(caller, definition, None).await);
    assert!(!made.active, "new ones are paused");
    stele.automation_activate(caller, made.id, |revision| revision == 1, true).await.expect("active")
}

async fn runs(stele: &Stele, caller: &Caller, of: &Automation) -> Vec<Run> {
    let query = RunQuery {
        automation: Some(of.id),
        limit: 1_000,
        created: Created::default(),
        ..RunQuery::default()
    };
    let (page, total) = stele.run_list(caller, &query).await.expect("a list");
    assert_eq!(page.items.len(), total);
    page.items
}

async fn timer(stele: &Stele, caller: &Caller, of: &Automation) -> Timer {
    stele.automation_timers(caller, of.id).await.expect("there").1.remove(0)
}

/// Looks at the timers until nothing is left to do.
async fn look(stele: &Stele) {
    while stele.timers_look().await.expect("looked") {}
}

/// The occasions of runs, oldest first; each is there once.
fn occasions(runs: &[Run]) -> Vec<i64> {
    let occasion = |run: &Run| match &run.cause {
        Cause::Schedule { occasion, .. } => occasion.as_micros(),
        Cause::Manual { .. } => panic!("nobody ran it by hand"),
    };
    let mut all: Vec<i64> = runs.iter().map(occasion).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "an occasion was run twice");
    all
}

/// SW-07.
pub(crate) async fn sw_07_each_occasion_is_run_once_by_whichever_server(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let servers = [server(&world), server(&world)];
    let caller = admin(&world);
    let automation = active(&servers[0], &caller).await;
    for minute in 0..10 {
        world.clock.advance(MINUTE);
        // One of them stands still for a while in between.
        if (4..6).contains(&minute) {
            look(&servers[0]).await;
        } else {
            tokio::join!(look(&servers[0]), look(&servers[1]));
        }
    }
    let runs = runs(&servers[1], &caller, &automation).await;
    let occasions = occasions(&runs);
    assert_eq!(occasions.len(), 10);
    assert!(occasions.windows(2).all(|pair| pair[1] - pair[0] == MINUTE), "none is left out");
    for run in &runs {
        let Ran::Created { session } = run.ran else { panic!("{:?}", run.ran) };
        servers[1].session_get(&caller, session).await.expect("each run has its session");
    }
    let timer = timer(&servers[0], &caller, &automation).await;
    assert_eq!((timer.skipped, timer.missed), (0, 0));
}

pub(crate) async fn an_occasion_that_passed_while_no_server_ran_is_made_up_for_or_missed(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let caller = admin(&world);
    let automation = active(&server(&world), &caller).await;
    world.clock.advance(60 * MINUTE);
    let started = server(&world);
    look(&started).await;
    let runs = runs(&started, &caller, &automation).await;
    let timer = timer(&started, &caller, &automation).await;
    // A quarter of an hour is made up for; the clock stands at some second of a minute.
    assert!((15..=16).contains(&runs.len()), "{}", runs.len());
    assert_eq!(occasions(&runs).len() as u64 + timer.missed, 60);
    look(&started).await;
    assert_eq!(self::runs(&started, &caller, &automation).await.len(), runs.len(), "and once");
}

pub(crate) async fn a_paused_automation_does_not_run_and_forgets_what_passed(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (stele, caller) = (server(&world), admin(&world));
    let automation = active(&stele, &caller).await;
    let stale = stele.automation_activate(&caller, automation.id, |revision| revision == 1, false).await;
    let changed = WorkRefusal::AutomationChanged { revision: 2 };
    assert!(
        matches!(stale, Err(Error::Refused { refusal: Refusal::Work(refusal), .. }) if refusal == changed)
    );
    stele.automation_activate(&caller, automation.id, |_| true, false).await.expect("paused");
    world.clock.advance(5 * MINUTE);
    look(&stele).await;
    assert!(runs(&stele, &caller, &automation).await.is_empty());
    let by_hand = now(stele.automation_run(&caller, automation.id, None, None).await);
    assert!(matches!(by_hand.ran, Ran::Created { .. }), "by hand it runs");
    stele.automation_activate(&caller, automation.id, |_| true, true).await.expect("active");
    look(&stele).await;
    assert_eq!(runs(&stele, &caller, &automation).await.len(), 1, "what passed is no occasion");
    world.clock.advance(MINUTE);
    look(&stele).await;
    assert_eq!(runs(&stele, &caller, &automation).await.len(), 2);
    stele.automation_delete(&caller, automation.id, |_| true).await.expect("deleted");
    world.clock.advance(MINUTE);
    look(&stele).await;
    assert_eq!(runs(&stele, &caller, &automation).await.len(), 2, "runs stay, and none comes");
}

fn once(identity: &[u8]) -> Option<Once<Automation>> {
    let answer = Box::new(|made: &Automation| made.id.to_string());
    Some(Once { key: "key".into(), identity: Sha256::of(identity), answer })
}

pub(crate) async fn a_key_counts_once_however_many_servers_it_is_sent_to(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let servers: Vec<Arc<Stele>> = (0..4).map(|_| server(&world)).collect();
    let caller = admin(&world);
    let definition = definition(&servers[0], &caller, Vec::new()).await;
    let create = |stele: Arc<Stele>| {
        let (caller, definition) = (caller.clone(), definition.clone());
        tokio::spawn(async move { stele.automation_create(&caller, definition, once(b"a")).await })
    };
    let tasks: Vec<_> = servers.iter().chain(&servers).cloned().map(create).collect();
    let (mut made, mut ids) = (0, Vec::new());
    for task in tasks {
        match task.await.expect("no panic").expect("carried out") {
            Answered::Now(automation) => {
                made += 1;
                ids.push(automation.id.to_string());
            }
            Answered::Before(answer) => ids.push(answer),
        }
    }
    ids.dedup();
    assert_eq!((made, ids.len()), (1, 1));
    assert_eq!(servers[1].automation_count(&caller).await.expect("counted"), 1);
    let other = servers[2].automation_create(&caller, definition.clone(), once(b"b")).await;
    let conflict = Refusal::Work(WorkRefusal::KeyOfAnotherRequest);
    assert!(matches!(other, Err(Error::Refused { refusal, .. }) if refusal == conflict));
    // A day later the key is free again, whether or not its receipt was forgotten.
    world.clock.advance_days(1);
    assert!(matches!(
        servers[3].automation_create(&caller, definition.clone(), once(b"b")).await,
        Ok(Answered::Now(_))
    ));
    world.clock.advance_days(1);
    servers[3].receipts_forget().await.expect("forgotten");
    assert!(matches!(
        servers[0].automation_create(&caller, definition, once(b"c")).await,
        Ok(Answered::Now(_))
    ));
}

pub(crate) async fn stores_that_are_gone_are_left_out_and_named(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (stele, caller) = (server(&world), admin(&world));
    let mut stores = Vec::new();
    for name in ["kept", "frozen", "deleted"] {
        let store = stele.store_create(&caller, crate::world::new_store(name)).await.expect("a store");
        stores.push(Wanted { store: store.id, access: Access::ReadWrite, instructions: None });
    }
    let definition = definition(&stele, &caller, stores.clone()).await;
    let automation = now(stele.automation_create(&caller, definition, None).await);
    for (store, command) in [(1, Command::ArchiveStore), (2, Command::DeleteStore)] {
        stele.change(&caller, stores[store].store, command, false).await.expect("changed");
    }
    let run = now(stele.automation_run(&caller, automation.id, None, None).await);
    let Ran::Created { session } = run.ran else { panic!("{:?}", run.ran) };
    let whole = stele.session_get(&caller, session).await.expect("there");
    let attached: Vec<_> = whole.session.attachments().map(|one| (one.learned, one.access)).collect();
    assert_eq!(attached, [(true, Access::ReadOnly), (false, Access::ReadWrite)], "the learned one first");
    let skipped = whole.session.extra[SKIPPED_STORES].as_array().expect("a list");
    let reasons: Vec<_> = skipped.iter().map(|one| one["reason"].as_str().expect("a text")).collect();
    assert_eq!(reasons, ["archived", "deleted"]);
}
