//! Signing in at the console over a back end, as several servers use it at once.

use stele_core::access::{Caller, Grant, Principal, Role};
use stele_core::key::{Contract, Secret};
use stele_core::model::Actor;
use stele_core::service::{IssuedKey, NewKey, Stele};
use stele_core::time::Timestamp;
use stele_core::work::console::SIGNED_IN_MICROS;

use crate::StoreFactory;
use crate::work::{admin, server};
use crate::world::{World, name};

/// Longer than any process believes a credential that it has looked up. DESIGN 6.
const NOTICED: i64 = 5_000_000;

fn wanted(person: Option<&str>, expires_at: Option<Timestamp>) -> NewKey {
    NewKey {
        name: name("laptop"),
        grant: Grant::Role(Role::Contributor),
        contract: Contract::default(),
        expires_at,
        person: person.map(name),
    }
}

async fn key(stele: &Stele, caller: &Caller, wanted: NewKey) -> IssuedKey {
    stele.key_create(caller, wanted).await.expect("a key")
}

async fn signed_in(stele: &Stele, key: &IssuedKey) -> Secret {
    stele.console_sign_in(key.secret.reveal()).await.expect("an answer").expect("the key works").secret
}

async fn who(stele: &Stele, secret: &Secret) -> Option<Caller> {
    stele.authenticate(secret.reveal()).await.expect("an answer")
}

pub(crate) async fn a_console_session_opens_what_its_key_opens_on_every_server(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (one, other) = (server(&world), server(&world));
    let key = key(&one, &admin(&world), wanted(None, None)).await;
    let cookie = signed_in(&one, &key).await;
    assert_ne!(cookie, key.secret);
    let shows_key = one.authenticate(key.secret.reveal()).await.expect("an answer");
    assert!(shows_key.is_some());
    assert_eq!(who(&one, &cookie).await, shows_key);
    assert_eq!(who(&other, &cookie).await, shows_key);
}

pub(crate) async fn what_is_no_working_key_signs_nobody_in(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (stele, admin) = (server(&world), admin(&world));
    let revoked = key(&stele, &admin, wanted(None, None)).await;
    let cookie = signed_in(&stele, &revoked).await;
    stele.key_revoke(&admin, revoked.key.id).await.expect("revoked");
    for shown in ["", "rma_x", revoked.secret.reveal(), cookie.reveal()] {
        assert!(stele.console_sign_in(shown).await.expect("an answer").is_none());
    }
}

pub(crate) async fn revoking_a_key_signs_out_everywhere(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (one, other, admin) = (server(&world), server(&world), admin(&world));
    let (revoked, kept) =
        (key(&one, &admin, wanted(None, None)).await, key(&one, &admin, wanted(None, None)).await);
    let cookies = [signed_in(&one, &revoked).await, signed_in(&other, &revoked).await];
    let still = signed_in(&one, &kept).await;
    assert!(who(&other, &cookies[0]).await.is_some() && who(&other, &cookies[1]).await.is_some());
    one.key_revoke(&admin, revoked.key.id).await.expect("revoked");
    for cookie in &cookies {
        assert_eq!(who(&one, cookie).await, None, "at once where it was revoked");
    }
    world.clock.advance(NOTICED);
    for cookie in &cookies {
        assert_eq!(who(&other, cookie).await, None);
    }
    assert!(who(&other, &still).await.is_some());
}

pub(crate) async fn signing_out_ends_one_console_session_on_every_server(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (one, other) = (server(&world), server(&world));
    let key = key(&one, &admin(&world), wanted(None, None)).await;
    let (here, there) = (signed_in(&one, &key).await, signed_in(&one, &key).await);
    assert!(who(&other, &here).await.is_some());
    one.console_sign_out(here.reveal()).await.expect("signed out");
    one.console_sign_out(here.reveal()).await.expect("twice is no error");
    // A key that is shown in a cookie's place is not ended.
    one.console_sign_out(key.secret.reveal()).await.expect("nothing to end");
    world.clock.advance(NOTICED);
    for stele in [&one, &other] {
        assert_eq!(who(stele, &here).await, None);
        assert!(who(stele, &there).await.is_some());
    }
}

pub(crate) async fn a_console_session_ends_with_its_time_and_with_that_of_its_key(
    factory: &dyn StoreFactory,
) {
    let world = World::open(factory).await;
    let (stele, admin) = (server(&world), admin(&world));
    let end = Timestamp::from_micros(world.now().as_micros() + SIGNED_IN_MICROS / 2);
    let (short, long) =
        (key(&stele, &admin, wanted(None, Some(end))).await, key(&stele, &admin, wanted(None, None)).await);
    let (short, long) = (signed_in(&stele, &short).await, signed_in(&stele, &long).await);
    world.clock.advance(SIGNED_IN_MICROS / 2);
    assert_eq!(who(&stele, &short).await, None);
    assert!(who(&stele, &long).await.is_some());
    world.clock.advance(SIGNED_IN_MICROS / 2);
    assert_eq!(who(&stele, &long).await, None);
    stele.console_sessions_forget().await.expect("forgotten");
    assert_eq!(who(&stele, &long).await, None);
}

pub(crate) async fn what_is_written_at_the_console_is_the_persons(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (stele, admin) = (server(&world), admin(&world));
    let (laptop, phone) = (
        key(&stele, &admin, wanted(Some("Ada"), None)).await,
        key(&stele, &admin, wanted(Some("Ada"), None)).await,
    );
    let person = |caller: Option<Caller>| match caller.expect("signed in").actor() {
        Actor::User(id) => Some(id),
        _ => None,
    };
    let ada = person(who(&stele, &signed_in(&stele, &laptop).await).await);
    assert!(ada.is_some());
    assert_eq!(person(who(&stele, &signed_in(&stele, &phone).await).await), ada, "one person with two keys");
    let shown = stele.authenticate(laptop.secret.reveal()).await.expect("an answer").expect("a caller");
    assert_eq!(shown.actor(), Actor::ApiKey(laptop.key.id), "the key itself is no person");
    let people = stele.person_list(&admin).await.expect("a list");
    assert_eq!(people.iter().map(|p| (Some(p.id), p.name.as_str())).collect::<Vec<_>>(), [(ada, "Ada")]);
    let nobody = key(&stele, &admin, wanted(None, None)).await;
    let caller = who(&stele, &signed_in(&stele, &nobody).await).await.expect("signed in");
    assert_eq!(caller.actor(), Actor::ApiKey(nobody.key.id));
    let Principal::Key { person, .. } = caller.principal else { panic!("a key") };
    assert_eq!(person, None);
    let holders = stele.key_holders(&admin, &[laptop.key.clone(), nobody.key]).await.expect("holders");
    assert_eq!(holders, [(laptop.key.id, "Ada".to_owned())].into());
}
