//! API keys. DESIGN 6, spec/recursion.md 2 and 18 X4.

use stele_core::access::{Grant, Permission, Permissions, Role};
use stele_core::id::KeyId;
use stele_core::key::{ApiKey, Contract, KeyHash, Secret};
use stele_core::storage::KeyRecord;
use stele_core::time::Timestamp;

use crate::StoreFactory;
use crate::world::*;

async fn keep(world: &World, change: impl FnOnce(&mut ApiKey)) -> (ApiKey, Secret) {
    world.clock.advance(1_000);
    let (KeyRecord { mut key, hash }, secret) = new_key(world.workspace, world.now());
    change(&mut key);
    sound(world.storage.key_create(KeyRecord { key: key.clone(), hash }).await);
    (key, secret)
}

async fn find(world: &World, secret: &Secret) -> Option<ApiKey> {
    sound(world.storage.key_by_hash(secret.hash()).await)
}

async fn list(world: &World) -> Vec<ApiKey> {
    sound(world.storage.key_list(world.workspace).await)
}

async fn revoke(world: &World, id: KeyId) -> bool {
    sound(world.storage.key_revoke(world.workspace, id).await)
}

pub(crate) async fn a_key_is_found_by_the_hash_of_its_secret_and_no_other(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (key, secret) = keep(&world, |_| {}).await;
    assert_eq!(find(&world, &secret).await, Some(key));
    for shown in ["", "rma_", secret.reveal().trim_end_matches(|_| true), &secret.reveal()[..46]] {
        assert_eq!(sound(world.storage.key_by_hash(KeyHash::of(shown)).await), None, "{shown:?}");
    }
}

pub(crate) async fn every_grant_contract_and_expiry_reads_back(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let sets = [
        vec![],
        vec![Permission::Read],
        vec![Permission::Delete],
        vec![Permission::Read, Permission::Create, Permission::Update],
        Permission::ALL.to_vec(),
    ];
    let roles = Role::ALL.into_iter().map(Grant::Role);
    let grants = roles.chain(sets.into_iter().map(|set| Grant::Permissions(Permissions::of(set))));
    for (n, grant) in grants.enumerate() {
        let contract = if n % 2 == 0 { Contract::V0_14 } else { Contract::V0_0 };
        let expires_at = (n % 3 == 0).then(|| Timestamp::from_micros(n as i64));
        let (key, secret) = keep(&world, |key| {
            *key =
                ApiKey { grant, contract, expires_at, name: name(&format!("Schlüssel {n}")), ..key.clone() };
        })
        .await;
        assert_eq!(find(&world, &secret).await, Some(key.clone()));
        assert_eq!(list(&world).await.last(), Some(&key));
    }
}

pub(crate) async fn keys_are_listed_oldest_first_expired_ones_too(factory: &dyn StoreFactory) {
    let world = World::open(factory).await.elsewhere().await;
    let mut expected = list(&world).await;
    assert_eq!(expected.len(), 1, "the workspace's first key");
    for n in 0..5 {
        let expires_at = (n == 2).then(|| world.now());
        expected.push(keep(&world, |key| key.expires_at = expires_at).await.0);
    }
    world.clock.advance_days(1);
    assert_eq!(list(&world).await, expected);
    assert!(!expected[3].works_at(world.now()));
}

pub(crate) async fn a_revoked_key_is_off_the_list_and_known_as_revoked(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (key, secret) = keep(&world, |_| {}).await;
    let (other, _) = keep(&world, |_| {}).await;
    world.clock.advance(500);
    assert!(revoke(&world, key.id).await);
    let revoked = find(&world, &secret).await.expect("still known");
    assert_eq!(revoked, ApiKey { revoked_at: Some(world.now()), ..key.clone() });
    assert!(!revoked.works_at(world.now()));
    let listed = list(&world).await;
    assert!(listed.contains(&other) && listed.iter().all(|listed| listed.id != key.id));
    world.clock.advance(500);
    assert!(!revoke(&world, key.id).await, "it does not work any more");
    assert_eq!(find(&world, &secret).await, Some(revoked), "the first stamp stays");
}

pub(crate) async fn unknown_and_foreign_keys_are_not_revoked(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let elsewhere = world.elsewhere().await;
    let (key, secret) = keep(&world, |_| {}).await;
    assert!(!revoke(&elsewhere, key.id).await);
    assert!(!revoke(&world, KeyId::mint(world.now(), 77)).await);
    assert_eq!(find(&world, &secret).await, Some(key));
}

pub(crate) async fn keys_of_other_workspaces_are_not_listed(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let elsewhere = world.elsewhere().await;
    let (ours, _) = keep(&world, |_| {}).await;
    let (theirs, secret) = keep(&elsewhere, |_| {}).await;
    assert!(list(&world).await.contains(&ours) && !list(&world).await.contains(&theirs));
    assert!(list(&elsewhere).await.contains(&theirs) && !list(&elsewhere).await.contains(&ours));
    assert_eq!(find(&world, &secret).await, Some(theirs), "a secret names its workspace itself");
}

pub(crate) async fn of_two_revocations_at_once_one_revokes(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let (key, _) = keep(&world, |_| {}).await;
    let jobs = (0..8).map(|_| {
        let world = world.clone();
        async move { revoke(&world, key.id).await }
    });
    assert_eq!(at_once(jobs).await.into_iter().filter(|revoked| *revoked).count(), 1);
}
