//! What calls of models take, within budgets, as several servers on one database count it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use stele_core::id::AgentId;
use stele_core::models::spending::{Amount, Budget, Budgets, CallError, DaySpending, Payer, Purpose};
use stele_core::models::{
    Block, Catalogue, Conversation, Cost, Delta, Fault, Hear, Message, Model, ModelEntry, ModelError, Price,
    Reply, Standing, Stop, Usage,
};
use stele_core::service::Stele;
use stele_core::storage::Answer;
use tokio::sync::{Notify, Semaphore};

use crate::StoreFactory;
use crate::work::{admin, server_with};
use crate::world::World;

const USAGE: Usage = Usage { input: 30, output: 20, cache_read: 10, cache_write: 0, estimated: false };
/// What a call reserves: the 12 bytes of the conversation and the most tokens of the answer.
const RESERVED: u64 = 4 + 96;
/// What one takes.
const TAKEN: u64 = 60;

/// What the model does.
enum Does {
    Answers,
    Fails,
    /// Says nine bytes and then nothing more.
    Hangs(Notify),
    /// Answers as often as it may.
    Waits(Semaphore),
}

struct Double {
    does: Does,
    calls: AtomicUsize,
}

impl Double {
    fn new(does: Does) -> Arc<Self> {
        Arc::new(Self { does, calls: AtomicUsize::new(0) })
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Model for Double {
    fn catalogue(&self) -> Answer<'_, Catalogue> {
        Box::pin(async { Catalogue { models: vec![entry()], silent: Vec::new() } })
    }

    fn find<'a>(&'a self, _name: &'a str) -> Answer<'a, Result<ModelEntry, ModelError>> {
        Box::pin(async { Ok(entry()) })
    }

    fn call<'a>(
        &'a self,
        model: &'a ModelEntry,
        _conversation: &'a Conversation,
        hear: Hear<'a>,
    ) -> Answer<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            self.calls.fetch_add(1, Ordering::SeqCst);
            match &self.does {
                Does::Answers => {}
                Does::Fails => {
                    let (provider, status) = (model.provider.clone(), Some(500));
                    return Err(ModelError::Failed { provider, status, fault: Fault::Status });
                }
                Does::Hangs(said) => {
                    hear(Delta::Begin);
                    hear(Delta::Text("nine byte".into()));
                    said.notify_one();
                    std::future::pending::<()>().await;
                }
                Does::Waits(slots) => slots.acquire().await.expect("never closed").forget(),
            }
            Ok(Reply {
                blocks: vec![Block::Text("ok".into())],
                stop: Stop::EndTurn,
                provider: model.provider.clone(),
                model: model.id.clone(),
                usage: USAGE,
                cost: model.price.map(|price| price.of(&USAGE)),
                latency: Duration::ZERO,
                tries: 1,
            })
        })
    }

    fn estimate_tokens(&self, _model: &ModelEntry, bytes: usize) -> u64 {
        bytes.div_ceil(3) as u64
    }

    fn standings(&self) -> Vec<Standing> {
        Vec::new()
    }
}

fn entry() -> ModelEntry {
    ModelEntry {
        provider: "p".into(),
        id: "m".into(),
        display_name: "m".into(),
        context_tokens: 1_000,
        output_tokens: None,
        tools: true,
        price: Some(Price { input: 1e6, output: 1e6, cache_read: 1e6, cache_write: 1e6 }),
    }
}

fn asked() -> Conversation {
    let messages = vec![Message::user("twelve bytes")];
    Conversation { messages, max_tokens: 96, ..Conversation::default() }
}

fn agent() -> Option<AgentId> {
    Some(AgentId::from_bytes([9; 16]))
}

fn payer(world: &World, agent: Option<AgentId>, purpose: Purpose) -> Payer {
    Payer { workspace: world.workspace, agent, purpose }
}

async fn call(stele: &Stele, payer: Payer, budgets: &Budgets) -> Result<Reply, CallError> {
    stele.model_call(payer, budgets, &entry(), &asked(), &mut |_| {}).await
}

/// The days of a payer, newest first.
async fn days(stele: &Stele, world: &World, agent: Option<AgentId>, purpose: Purpose) -> Vec<DaySpending> {
    let listed = stele.spending_list(&admin(world), agent, purpose, None, 100).await;
    listed.expect("a list").items
}

fn amount(tokens: u64) -> Amount {
    Amount { tokens, cost: Cost::from_units(tokens as f64) }
}

fn tokens(daily: u64) -> Budget {
    Budget { daily_tokens: Some(daily), daily_cost: None }
}

pub(crate) async fn calls_are_counted_to_the_workspace_and_the_agent_by_day_and_purpose(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let (model, budgets) = (Double::new(Does::Answers), Budgets::default());
    let stele = server_with(&world, Some(model));
    let learning = payer(&world, agent(), Purpose::Learning);
    for _ in 0..2 {
        call(&stele, learning, &budgets).await.expect("a reply");
    }
    call(&stele, payer(&world, None, Purpose::Learning), &budgets).await.expect("a reply");
    call(&stele, payer(&world, agent(), Purpose::Session), &budgets).await.expect("a reply");
    world.clock.advance_days(1);
    call(&stele, learning, &budgets).await.expect("a reply");
    let spent = async |agent, purpose| -> Vec<(u64, Amount, Amount)> {
        let days = days(&stele, &world, agent, purpose).await;
        days.iter().map(|day| (day.calls, day.spent, day.reserved)).collect()
    };
    let of = |calls: u64| (calls, amount(calls * TAKEN), Amount::default());
    assert_eq!(spent(None, Purpose::Learning).await, [of(1), of(3)], "newest first");
    assert_eq!(spent(agent(), Purpose::Learning).await, [of(1), of(2)]);
    assert_eq!(spent(agent(), Purpose::Session).await, [of(1)]);
    let day = days(&stele, &world, agent(), Purpose::Session).await.remove(0);
    assert_eq!((day.usage, day.failed), (USAGE, 0));
}

pub(crate) async fn a_budget_that_has_no_room_stops_a_call_before_it_is_made(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let model = Double::new(Does::Answers);
    let stele = server_with(&world, Some(model.clone()));
    let budgets = Budgets { workspace: tokens(2 * TAKEN + RESERVED), agent: tokens(TAKEN + RESERVED) };
    let learning = payer(&world, agent(), Purpose::Learning);
    call(&stele, learning, &budgets).await.expect("a reply");
    call(&stele, learning, &budgets).await.expect("just room");
    let refused = call(&stele, learning, &budgets).await.expect_err("no room");
    assert!(matches!(refused, CallError::Budget { owner: "agent", .. }), "{refused}");
    let other = payer(&world, Some(AgentId::from_bytes([8; 16])), Purpose::Learning);
    call(&stele, other, &budgets).await.expect("another agent has a budget of its own");
    let refused = call(&stele, other, &budgets).await.expect_err("no room");
    assert!(matches!(refused, CallError::Budget { owner: "workspace", .. }), "{refused}");
    assert_eq!(model.calls(), 3);
    let cost = Budget { daily_tokens: None, daily_cost: Some(Cost::from_units(1.0)) };
    let dear = Budgets { workspace: cost, ..budgets };
    let refused = call(&stele, payer(&world, None, Purpose::Session), &dear).await.expect_err("too dear");
    assert!(matches!(refused, CallError::Budget { unit: "units of money", .. }), "{refused}");
    world.clock.advance_days(1);
    call(&stele, learning, &budgets).await.expect("a new day");
}

pub(crate) async fn of_parallel_calls_only_as_many_are_made_as_the_budget_has_room_for(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let model = Double::new(Does::Waits(Semaphore::new(0)));
    let servers: Vec<_> = (0..2).map(|_| server_with(&world, Some(model.clone()))).collect();
    let budgets = Budgets { workspace: tokens(3 * RESERVED), agent: Budget::default() };
    let learning = payer(&world, agent(), Purpose::Learning);
    let calls: Vec<_> = (0..10)
        .map(|i| {
            let stele = servers[i % 2].clone();
            tokio::spawn(async move { call(&stele, learning, &budgets).await })
        })
        .collect();
    // Those that are refused end while the others hold their reservations.
    while calls.iter().filter(|call| call.is_finished()).count() < 7 || model.calls() < 3 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let Does::Waits(slots) = &model.does else { unreachable!("made so above") };
    slots.add_permits(3);
    let mut made = 0;
    for call in calls {
        match call.await.expect("no panic") {
            Ok(_) => made += 1,
            Err(error) => assert!(matches!(error, CallError::Budget { .. }), "{error}"),
        }
    }
    assert_eq!((made, model.calls()), (3, 3));
    let day = days(&servers[0], &world, None, Purpose::Learning).await.remove(0);
    assert_eq!((day.calls, day.spent, day.reserved), (3, amount(3 * TAKEN), Amount::default()));
}

pub(crate) async fn a_call_that_nobody_waits_for_counts_what_was_said(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let model = Double::new(Does::Hangs(Notify::new()));
    let stele = server_with(&world, Some(model.clone()));
    let learning = payer(&world, agent(), Purpose::Learning);
    let Does::Hangs(said) = &model.does else { unreachable!("made so above") };
    let budgets = Budgets::default();
    tokio::select! {
        _ = call(&stele, learning, &budgets) => panic!("it does not end"),
        () = said.notified() => {}
    }
    let day = loop {
        let day = days(&stele, &world, agent(), Purpose::Learning).await.remove(0);
        if day.reserved == Amount::default() {
            break day;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    let usage = Usage { input: 4, output: 3, estimated: true, ..Usage::default() };
    assert_eq!((day.calls, day.failed, day.usage, day.spent), (1, 1, usage, amount(7)));
}

pub(crate) async fn a_call_that_fails_gives_its_reservation_back(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let stele = server_with(&world, Some(Double::new(Does::Fails)));
    let learning = payer(&world, agent(), Purpose::Learning);
    let failed = call(&stele, learning, &Budgets::default()).await.expect_err("it fails");
    assert!(matches!(&failed, CallError::Model(error) if error.status() == Some(500)), "{failed}");
    let day = days(&stele, &world, None, Purpose::Learning).await.remove(0);
    assert_eq!(
        (day.calls, day.failed, day.spent, day.reserved),
        (1, 1, Amount::default(), Amount::default())
    );
}
