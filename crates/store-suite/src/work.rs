//! Agents, sessions and the work queue over a back end, as several servers use it at once.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use stele_core::access::{Caller, Grant, Principal, Role};
use stele_core::clock::System;
use stele_core::id::{AgentId, EnvironmentId, EnvironmentKeyId, KeyId, OrganizationId, SessionId};
use stele_core::limits::Limits;
use stele_core::list::Created;
use stele_core::models::Model;
use stele_core::records::Order;
use stele_core::searcher::Workers;
use stele_core::service::{
    EventsQuery, FollowedBy, NewAgent, NewEnvironment, NewSession, SessionFilter, SessionQuery, Setup, Stele,
    WhenRunning,
};
use stele_core::storage::{Error, Installation};
use stele_core::text::Metadata;
use stele_core::work::agent::{Definition, DefinitionPatch};
use stele_core::work::attachment::Naming;
use stele_core::work::environment::Hosting;
use stele_core::work::event::{Event, EventKind, NewEvent};
use stele_core::work::item::ItemState;
use stele_core::work::session::{Facet, SessionStatus};
use stele_core::work::{Dialect, Fields};

use crate::StoreFactory;
use crate::world::World;

/// Searches and what outlives a request, on the runtime of the case.
pub(crate) struct Inline;

impl Workers for Inline {
    fn run(&self, work: Box<dyn FnOnce() + Send>) {
        work();
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        tokio::spawn(task);
    }
}

/// A server on the world's storage; several of them are several servers on one database.
pub(crate) fn server(world: &World) -> Arc<Stele> {
    server_with(world, None)
}

/// The same, with these models.
pub(crate) fn server_with(world: &World, models: Option<Arc<dyn Model>>) -> Arc<Stele> {
    let setup = Setup {
        storage: world.storage.clone(),
        clock: world.clock.clone(),
        random: Arc::new(System),
        limits: Limits::default(),
        body_cache_bytes: 1 << 20,
        search_index_bytes: 1 << 20,
        workers: Arc::new(Inline),
        embedder: None,
        models,
        purge_wanted: Box::new(|| {}),
    };
    let organization = OrganizationId::from_bytes([1; 16]);
    Arc::new(Stele::new(setup, Installation::new(organization, world.workspace)))
}

pub(crate) fn admin(world: &World) -> Caller {
    let (key, grant) = (KeyId::from_bytes([2; 16]), Grant::Role(Role::Admin));
    let principal = Principal::Key { key, grant, first_workspace: true, person: None };
    Caller { workspace: world.workspace, principal }
}

fn worker(world: &World, environment: EnvironmentId) -> Caller {
    let principal = Principal::Environment { key: EnvironmentKeyId::from_bytes([3; 16]), environment };
    Caller { workspace: world.workspace, principal }
}

pub(crate) async fn agent(stele: &Stele, caller: &Caller) -> AgentId {
    let definition = Definition {
        name: "Tester".into(),
        description: None,
        model: "m".into(),
        model_options: Fields::new(),
        system: None,
        tools: Vec::new(),
        mcp_servers: Vec::new(),
        skills: Vec::new(),
        multiagent: None,
        metadata: Metadata::default(),
        extra: Fields::new(),
    };
    let new = NewAgent { made_through: Dialect::Recursion, definition, labels: Vec::new() };
    stele.agent_create(caller, new).await.expect("an agent").id
}

pub(crate) async fn environment(stele: &Stele, caller: &Caller) -> EnvironmentId {
    let new = NewEnvironment {
        made_through: Dialect::Anthropic,
        name: "here".into(),
        description: None,
        hosting: Hosting::SelfHosted,
        config: Fields::new(),
        metadata: Metadata::default(),
        extra: Fields::new(),
    };
    stele.environment_create(caller, new).await.expect("an environment").id
}

async fn session(
    stele: &Stele,
    caller: &Caller,
    agent: AgentId,
    environment: Option<EnvironmentId>,
) -> Result<SessionId, Error> {
    let new = NewSession {
        made_through: Dialect::Recursion,
        agent,
        version: None,
        overrides: DefinitionPatch::default(),
        environment,
        resources: Vec::new(),
        naming: Naming::BySlug,
        title: None,
        metadata: Metadata::default(),
        vaults: Vec::new(),
        budget: None,
        extra: Fields::new(),
        events: Vec::new(),
    };
    Ok(stele.session_create(caller, new).await?.session.id)
}

fn no_id(_: &str) -> Option<stele_core::id::EventId> {
    None
}

async fn said(stele: &Stele, caller: &Caller, session: SessionId, count: usize) -> Vec<Event> {
    let events = vec![NewEvent::bare(EventKind::INTERRUPT); count];
    stele.event_send(caller, session, events, no_id).await.expect("sent").0
}

async fn all_events(stele: &Stele, caller: &Caller, session: SessionId) -> Vec<Event> {
    let query = EventsQuery {
        kinds: Vec::new(),
        at: Created::default(),
        order: Order::OldestFirst,
        after: None,
        limit: 10_000,
    };
    stele.event_list(caller, session, query).await.expect("listed").0.items
}

async fn listed(stele: &Stele, caller: &Caller, facet: Facet, include_archived: bool) -> Vec<SessionId> {
    let query = SessionQuery {
        filter: SessionFilter::default(),
        facet,
        also: Vec::new(),
        agent_version: None,
        statuses: Vec::new(),
        created: Created::default(),
        include_archived,
        order: Order::NewestFirst,
        after: None,
        limit: 100,
    };
    let page = stele.session_list(caller, query).await.expect("listed");
    page.items.into_iter().map(|whole| whole.session.id).collect()
}

pub(crate) async fn events_of_several_servers_are_all_there_in_one_order(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (here, there, caller) = (server(&world), server(&world), admin(&world));
    let agent = agent(&here, &caller).await;
    let id = session(&here, &caller, agent, None).await.expect("a session");
    let send = |stele: Arc<Stele>, caller: Caller| async move {
        let mut sent = Vec::new();
        for _ in 0..20 {
            sent.extend(said(&stele, &caller, id, 3).await.into_iter().map(|event| event.id));
        }
        sent
    };
    let tasks: Vec<_> = [here.clone(), there.clone(), here.clone(), there]
        .into_iter()
        .map(|stele| tokio::spawn(send(stele, caller.clone())))
        .collect();
    let mut sent = Vec::new();
    for task in tasks {
        sent.push(task.await.expect("no panic"));
    }
    let events = all_events(&here, &caller, id).await;
    assert_eq!(events.len(), 240);
    assert!(events.windows(2).all(|pair| pair[0].id < pair[1].id && pair[0].at < pair[1].at));
    assert!((1..).zip(&events).all(|(sequence, event)| event.sequence == sequence));
    for ids in sent {
        assert!(ids.is_sorted(), "one sender's events keep its order");
        let mine: Vec<_> = events.iter().map(|event| event.id).filter(|id| ids.contains(id)).collect();
        assert_eq!(mine, ids);
    }
}

pub(crate) async fn first_sessions_at_once_make_one_learned_store(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let caller = admin(&world);
    let servers = [server(&world), server(&world)];
    let agent = agent(&servers[0], &caller).await;
    let start = |stele: Arc<Stele>, caller: Caller| async move {
        let id = session(&stele, &caller, agent, None).await.expect("a session");
        let whole = stele.session_get(&caller, id).await.expect("it is there");
        whole.session.attachments().next().expect("the learned store").clone()
    };
    let tasks: Vec<_> = (0..6).map(|n| tokio::spawn(start(servers[n % 2].clone(), caller.clone()))).collect();
    let mut stores = BTreeSet::new();
    for task in tasks {
        let attachment = task.await.expect("no panic");
        assert!(attachment.learned);
        stores.insert(attachment.store);
    }
    assert_eq!(stores.len(), 1);
    assert_eq!(world.storage.store_count().await.expect("counted"), 1);
}

pub(crate) async fn an_item_goes_to_one_of_many_workers(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (servers, caller) = ([server(&world), server(&world)], admin(&world));
    let agent = agent(&servers[0], &caller).await;
    let place = environment(&servers[0], &caller).await;
    let mut sessions = BTreeSet::new();
    for _ in 0..6 {
        sessions.insert(session(&servers[0], &caller, agent, Some(place)).await.expect("a session"));
    }
    let poll = |stele: Arc<Stele>, caller: Caller| async move {
        stele.work_poll(&caller, place, None, 5_000).await.expect("polled").map(|offer| offer.item.session)
    };
    let tasks: Vec<_> =
        (0..8).map(|n| tokio::spawn(poll(servers[n % 2].clone(), worker(&world, place)))).collect();
    let mut offered = Vec::new();
    for task in tasks {
        offered.extend(task.await.expect("no panic"));
    }
    assert_eq!(offered.len(), 6, "each once");
    assert_eq!(offered.into_iter().collect::<BTreeSet<_>>(), sessions);
}

pub(crate) async fn a_lease_that_passes_puts_the_item_back(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (stele, caller) = (server(&world), admin(&world));
    let agent = agent(&stele, &caller).await;
    let place = environment(&stele, &caller).await;
    let works = worker(&world, place);
    session(&stele, &caller, agent, Some(place)).await.expect("a session");
    let offer = stele.work_poll(&works, place, Some("w"), 5_000).await.expect("polled").expect("an item");
    let (id, old) = (offer.item.id, offer.token);
    stele.work_acknowledge(&works, place, id).await.expect("acknowledged");
    let beat = stele.work_heartbeat(&works, place, id, "NO_HEARTBEAT", Some(10)).await.expect("claimed");
    assert!(stele.authenticate(old.reveal()).await.expect("looked up").is_some());
    world.clock.advance(9_999_999);
    stele.work_settle().await.expect("settled");
    assert_eq!(stele.work_get(&caller, place, id).await.expect("there").state, ItemState::Active);
    world.clock.advance(1);
    stele.work_settle().await.expect("settled");
    assert!(stele.work_heartbeat(&works, place, id, &beat.last_heartbeat, None).await.is_err());
    let again = stele.work_poll(&works, place, Some("w"), 5_000).await.expect("polled").expect("the item");
    assert_eq!(again.item.id, id);
    assert!(stele.authenticate(old.reveal()).await.expect("looked up").is_none(), "another token counts");
    assert!(stele.authenticate(again.token.reveal()).await.expect("looked up").is_some());
    stele.work_stop(&works, place, id, true).await.expect("stopped");
    world.clock.advance(59_000_000);
    stele.work_settle().await.expect("settled");
    assert!(stele.authenticate(again.token.reveal()).await.expect("looked up").is_some());
    world.clock.advance(2_000_000);
    assert!(stele.authenticate(again.token.reveal()).await.expect("looked up").is_none(), "a minute later");
}

pub(crate) async fn sessions_are_found_by_what_they_carry(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (stele, caller) = (server(&world), admin(&world));
    let (first, second) = (agent(&stele, &caller).await, agent(&stele, &caller).await);
    let mut of_first = Vec::new();
    for _ in 0..3 {
        world.clock.advance(1);
        of_first.insert(0, session(&stele, &caller, first, None).await.expect("a session"));
        session(&stele, &caller, second, None).await.expect("a session");
    }
    assert_eq!(listed(&stele, &caller, Facet::All, false).await.len(), 6);
    assert_eq!(listed(&stele, &caller, Facet::Agent(first), false).await, of_first);
    let learned = stele.agent_get(&caller, first).await.expect("there").learned_store.expect("it has one");
    assert_eq!(listed(&stele, &caller, Facet::Store(learned), false).await, of_first);
    stele.session_archive(&caller, of_first[1]).await.expect("archived");
    assert_eq!(listed(&stele, &caller, Facet::Agent(first), false).await, [of_first[0], of_first[2]]);
    assert_eq!(listed(&stele, &caller, Facet::Agent(first), true).await, of_first);
    stele.session_delete(&caller, of_first[0], WhenRunning::Refuse).await.expect("deleted");
    assert_eq!(listed(&stele, &caller, Facet::Agent(first), true).await, of_first[1..]);
    let whole = stele.session_get(&caller, of_first[1]).await.expect("archived ones are read");
    assert_eq!(whole.state.status, SessionStatus::Terminated);
}

pub(crate) async fn a_follower_hears_of_events_and_of_the_end(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (stele, caller) = (server(&world), admin(&world));
    let agent = agent(&stele, &caller).await;
    let id = session(&stele, &caller, agent, None).await.expect("a session");
    said(&stele, &caller, id, 2).await;
    let mut feed = stele.event_follow(&caller, id).await.expect("followed");
    let sent = said(&stele, &caller, id, 3).await;
    let heard = feed.next().await.expect("heard");
    assert_eq!(heard, FollowedBy::Events(sent), "what came before is not told again");
    let waiting = tokio::spawn(async move { feed.next().await });
    tokio::task::yield_now().await;
    stele.session_delete(&caller, id, WhenRunning::Refuse).await.expect("deleted");
    assert_eq!(waiting.await.expect("no panic").expect("heard"), FollowedBy::Deleted);
}
