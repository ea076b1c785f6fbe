//! The installation, its workspaces, and readiness. DESIGN 6.

use stele_core::clock::{Random, System};
use stele_core::id::OrganizationId;
use stele_core::limits::Limits;
use stele_core::storage::{Installation, Workspace, WorkspacePatch};

use crate::StoreFactory;
use crate::world::*;

fn organization(world: &World) -> OrganizationId {
    OrganizationId::mint(world.now(), System.bits())
}

async fn install(world: &World) -> (Installation, Workspace, stele_core::key::Secret) {
    let workspace = world.new_workspace();
    let (key, secret) = new_key(workspace.id, world.now());
    let answer = world.storage.install(organization(world), workspace.clone(), key).await;
    (sound(answer), workspace, secret)
}

async fn workspaces(world: &World) -> Vec<Workspace> {
    sound(world.storage.workspace_list().await)
}

pub(crate) async fn a_fresh_back_end_has_no_installation_and_serves(factory: &dyn StoreFactory) {
    let world = World::bare(factory, Limits::default()).await;
    sound(world.storage.ping().await);
    assert_eq!(sound(world.storage.installation().await), None);
    assert_eq!(workspaces(&world).await, []);
    assert_eq!(sound(world.storage.store_count().await), 0);
    sound(world.storage.sweep().await);
}

pub(crate) async fn an_installation_has_its_workspace_and_key(factory: &dyn StoreFactory) {
    let world = World::bare(factory, Limits::default()).await;
    let (made, workspace, secret) = install(&world).await;
    assert_eq!(made.first_workspace, workspace.id);
    assert_eq!(sound(world.storage.installation().await), Some(made));
    assert_eq!(workspaces(&world).await, std::slice::from_ref(&workspace));
    let key = sound(world.storage.key_by_hash(secret.hash()).await).expect("the admin key");
    assert_eq!(key.workspace, workspace.id);
    assert_eq!(sound(world.storage.key_list(workspace.id).await), [key]);
}

pub(crate) async fn a_second_install_answers_with_the_first_and_writes_nothing(factory: &dyn StoreFactory) {
    let world = World::bare(factory, Limits::default()).await;
    let (made, workspace, _) = install(&world).await;
    let (again, ignored, secret) = install(&world).await;
    assert_eq!(again, made);
    assert_eq!(sound(world.storage.installation().await), Some(made));
    assert_eq!(workspaces(&world).await, [workspace]);
    assert_eq!(sound(world.storage.key_by_hash(secret.hash()).await), None);
    assert_eq!(sound(world.storage.key_list(ignored.id).await), []);
}

pub(crate) async fn of_many_installs_at_once_all_answer_alike(factory: &dyn StoreFactory) {
    let world = World::bare(factory, Limits::default()).await;
    let jobs = (0..16).map(|_| {
        let world = world.clone();
        async move { install(&world).await.0 }
    });
    let answers = at_once(jobs).await;
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(workspaces(&world).await.len(), 1);
}

pub(crate) async fn workspaces_are_listed_oldest_first_with_their_keys(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let mut expected = workspaces(&world).await;
    for _ in 0..4 {
        world.clock.advance(1_000);
        let workspace = world.new_workspace();
        let (key, secret) = new_key(workspace.id, world.now());
        sound(world.storage.workspace_create(workspace.clone(), key.clone()).await);
        assert_eq!(sound(world.storage.key_by_hash(secret.hash()).await), Some(key.key));
        expected.push(workspace);
        assert_eq!(workspaces(&world).await, expected);
    }
}

pub(crate) async fn a_workspace_changes_in_what_a_patch_names(factory: &dyn StoreFactory) {
    let world = World::open(factory).await;
    let made = Workspace { max_memories_per_store: Some(7), ..world.new_workspace() };
    let (key, _) = new_key(made.id, world.now());
    sound(world.storage.workspace_create(made.clone(), key).await);
    let update = async |patch| sound(world.storage.workspace_update(made.id, patch).await);
    assert_eq!(update(WorkspacePatch::default()).await, Some(made.clone()));
    let renamed = Workspace { name: name("renamed"), ..made.clone() };
    let patch = WorkspacePatch { name: Some(name("renamed")), ..WorkspacePatch::default() };
    assert_eq!(update(patch).await, Some(renamed.clone()));
    let uncapped = Workspace { max_memories_per_store: None, ..renamed };
    let patch = WorkspacePatch { max_memories_per_store: Some(None), ..WorkspacePatch::default() };
    assert_eq!(update(patch).await, Some(uncapped.clone()));
    assert!(workspaces(&world).await.contains(&uncapped));
    let unknown = world.new_workspace().id;
    assert_eq!(sound(world.storage.workspace_update(unknown, WorkspacePatch::default()).await), None);
    assert!(!workspaces(&world).await.iter().any(|workspace| workspace.id == unknown));
}
