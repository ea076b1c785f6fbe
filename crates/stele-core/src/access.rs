//! Who may do what: four permissions, four roles, one table. DESIGN 6, spec/recursion.md 12.

use std::sync::Arc;

use serde::Serialize;

use crate::id::{
    EnvironmentId, EnvironmentKeyId, KeyId, ServiceAccountId, SessionId, SessionTokenId, StoreId, UserId,
    WorkItemId, WorkspaceId,
};
use crate::model::Actor;
use crate::refusal::Refusal;
use crate::work::attachment::Access;

/// One of the four permissions that decide everything inside a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    /// Every read.
    Read,
    /// New stores and memories.
    Create,
    /// Changes of what exists, archiving, restoring.
    Update,
    /// Deletions and redactions.
    Delete,
}

impl Permission {
    /// All four, in the order they are listed in.
    pub const ALL: [Permission; 4] = [Self::Read, Self::Create, Self::Update, Self::Delete];

    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Create => 2,
            Self::Update => 4,
            Self::Delete => 8,
        }
    }
}

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(u8);

impl Permissions {
    /// The set with these members.
    pub fn of(members: impl IntoIterator<Item = Permission>) -> Self {
        Self(members.into_iter().fold(0, |bits, p| bits | p.bit()))
    }

    /// Whether `permission` is in the set.
    pub const fn has(self, permission: Permission) -> bool {
        self.0 & permission.bit() != 0
    }

    /// The members, in listing order.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |p| self.has(*p))
    }

    /// The set as stored.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The stored set.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 15)
    }
}

/// A named set of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything, and managing keys, policies and the audit trail.
    Admin,
    /// All four permissions.
    Developer,
    /// Read, create and update.
    Contributor,
    /// Read.
    Reader,
}

impl Role {
    /// All four, strongest first.
    pub const ALL: [Role; 4] = [Self::Admin, Self::Developer, Self::Contributor, Self::Reader];

    /// Its name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Developer => "developer",
            Self::Contributor => "contributor",
            Self::Reader => "reader",
        }
    }

    /// The role of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// What it comes to.
    pub fn permissions(self) -> Permissions {
        use Permission::*;
        match self {
            Self::Admin | Self::Developer => Permissions::of(Permission::ALL),
            Self::Contributor => Permissions::of([Read, Create, Update]),
            Self::Reader => Permissions::of([Read]),
        }
    }
}

/// What a key is allowed: a role, or an explicit set of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// What the role is allowed.
    Role(Role),
    /// Just these permissions, and no administration.
    Permissions(Permissions),
}

impl Grant {
    /// The permissions that it comes to.
    pub fn permissions(self) -> Permissions {
        match self {
            Self::Role(role) => role.permissions(),
            Self::Permissions(permissions) => permissions,
        }
    }

    /// Whether it manages keys.
    pub fn is_admin(self) -> bool {
        self == Self::Role(Role::Admin)
    }
}

/// A kind of thing that a caller acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Memory stores.
    Store,
    /// Memories.
    Memory,
    /// Versions.
    Version,
    /// API keys of the caller's workspace.
    ApiKey,
    /// Workspaces of the installation.
    Workspace,
    /// Backups of the installation.
    Backup,
    /// Agents and their versions.
    Agent,
    /// Environments.
    Environment,
    /// Keys of environments.
    EnvironmentKey,
    /// Sessions with their attachments.
    Session,
    /// Events of sessions, as whoever talks to the agent sends them.
    Event,
    /// Events of sessions, as whoever runs the agent reports them.
    Recording,
    /// Tokens of sessions.
    SessionToken,
    /// Items of an environment's work queue.
    WorkItem,
    /// Automations and their runs.
    Automation,
    /// Whole stores as files: read is to export one, update to import into one, create to put one back with its ids.
    Archive,
}

impl Resource {
    /// All of them.
    pub const ALL: [Resource; 16] = [
        Self::Store,
        Self::Memory,
        Self::Version,
        Self::ApiKey,
        Self::Workspace,
        Self::Backup,
        Self::Agent,
        Self::Environment,
        Self::EnvironmentKey,
        Self::Session,
        Self::Event,
        Self::Recording,
        Self::SessionToken,
        Self::WorkItem,
        Self::Automation,
        Self::Archive,
    ];
}

/// What a caller does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Make a new one.
    Create,
    /// Read or list.
    Read,
    /// Change one.
    Update,
    /// Make one read-only for good.
    Archive,
    /// Write an old version back.
    Restore,
    /// Remove a version's text for good.
    Redact,
    /// Remove one.
    Delete,
    /// Take it to do it.
    Claim,
    /// Look through those that wait and that are being done.
    List,
    /// Say that it is still being done.
    Heartbeat,
    /// End it, or ask for its end.
    Stop,
}

impl Action {
    /// All of them.
    pub const ALL: [Action; 11] = [
        Self::Create,
        Self::Read,
        Self::Update,
        Self::Archive,
        Self::Restore,
        Self::Redact,
        Self::Delete,
        Self::Claim,
        Self::List,
        Self::Heartbeat,
        Self::Stop,
    ];
}

/// What an action needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// A permission.
    Permission(Permission),
    /// The admin role.
    Admin,
    /// The admin role in the first workspace, which runs the installation.
    InstallationAdmin,
    /// An API key, not the narrow credential of a worker or session.
    ApiKey,
    /// The key of an environment, or a token of the session that is worked on.
    Worker,
    /// A store that is attached for reading and writing.
    ReadWrite,
}

/// The table: what `action` on `resource` needs of an API key; `None` where there is no such thing to do.
/// [`narrow`] says what the other credentials open.
pub const fn requirement(resource: Resource, action: Action) -> Option<Requirement> {
    use Action::*;
    use Requirement::Permission as Needs;
    let needs = match resource {
        Resource::Store => match action {
            Create => Needs(Permission::Create),
            Read => Needs(Permission::Read),
            Update | Archive => Needs(Permission::Update),
            Delete => Needs(Permission::Delete),
            Restore | Redact | Claim | List | Heartbeat | Stop => return None,
        },
        Resource::Memory => match action {
            Create => Needs(Permission::Create),
            Read => Needs(Permission::Read),
            Update => Needs(Permission::Update),
            Delete => Needs(Permission::Delete),
            Archive | Restore | Redact | Claim | List | Heartbeat | Stop => return None,
        },
        Resource::Version => match action {
            Read => Needs(Permission::Read),
            Restore => Needs(Permission::Update),
            Redact => Needs(Permission::Delete),
            Create | Update | Archive | Delete | Claim | List | Heartbeat | Stop => return None,
        },
        Resource::ApiKey | Resource::EnvironmentKey => match action {
            Create | Read | Delete => Requirement::Admin,
            Update | Archive | Restore | Redact | Claim | List | Heartbeat | Stop => return None,
        },
        Resource::Workspace => match action {
            Create | Read | Update => Requirement::InstallationAdmin,
            Archive | Restore | Redact | Delete | Claim | List | Heartbeat | Stop => return None,
        },
        Resource::Session => match action {
            Create => Needs(Permission::Create),
            Read | List => Needs(Permission::Read),
            Update | Archive => Needs(Permission::Update),
            Delete => Needs(Permission::Delete),
            Restore | Redact | Claim | Heartbeat | Stop => return None,
        },
        Resource::Agent | Resource::Environment => match action {
            Create => Needs(Permission::Create),
            Read => Needs(Permission::Read),
            Update | Archive => Needs(Permission::Update),
            Delete => Needs(Permission::Delete),
            Restore | Redact | Claim | List | Heartbeat | Stop => return None,
        },
        Resource::Automation => match action {
            Create => Needs(Permission::Create),
            Read => Needs(Permission::Read),
            Update => Needs(Permission::Update),
            Delete => Needs(Permission::Delete),
            Archive | Restore | Redact | Claim | List | Heartbeat | Stop => return None,
        },
        Resource::Event => match action {
            Create => Needs(Permission::Update),
            Read => Needs(Permission::Read),
            Update | Archive | Restore | Redact | Delete | Claim | List | Heartbeat | Stop => return None,
        },
        Resource::Recording | Resource::SessionToken => match action {
            Create => Needs(Permission::Update),
            Read | Update | Archive | Restore | Redact | Delete | Claim | List | Heartbeat | Stop => {
                return None;
            }
        },
        Resource::WorkItem => match action {
            Read => Needs(Permission::Read),
            Update | Stop => Needs(Permission::Update),
            Claim | List | Heartbeat => Requirement::Worker,
            Create | Archive | Restore | Redact | Delete => return None,
        },
        Resource::Archive => match action {
            Create => Requirement::Admin,
            Read => Needs(Permission::Read),
            // What it changes is judged change by change.
            Update => Needs(Permission::Create),
            Archive | Restore | Redact | Delete | Claim | List | Heartbeat | Stop => return None,
        },
        Resource::Backup => match action {
            Create | Read | Update | Delete => Requirement::InstallationAdmin,
            Archive | Restore | Redact | Claim | List | Heartbeat | Stop => return None,
        },
    };
    Some(needs)
}

/// Which of the narrow credentials open something, on what is theirs. spec/anthropic.md 12.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Narrow {
    /// The key of an environment.
    pub environment_key: bool,
    /// A token of a session.
    pub session_token: bool,
}

/// The other half of the table: which narrow credentials open `action` on `resource`.
pub const fn narrow(resource: Resource, action: Action) -> Narrow {
    let environment_key = matches!(
        (resource, action),
        (Resource::WorkItem, Action::Claim | Action::List | Action::Heartbeat | Action::Stop)
            | (Resource::Session, Action::Read)
            | (Resource::Event, Action::Create | Action::Read)
    );
    let session_token = matches!(
        (resource, action),
        (Resource::WorkItem, Action::Heartbeat | Action::Stop)
            | (Resource::Session | Resource::Version, Action::Read)
            | (Resource::Event, Action::Create | Action::Read)
            | (Resource::Memory, Action::Create | Action::Read | Action::Update | Action::Delete)
    );
    Narrow { environment_key, session_token }
}

/// What the holder of a session's token reaches: the session with its attachments, no more. DESIGN 3.7 and 6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionScope {
    /// The token.
    pub token: SessionTokenId,
    /// The session, whose writes these are.
    pub session: SessionId,
    /// The work item that the token was handed out with.
    pub item: Option<WorkItemId>,
    /// The environment of that item.
    pub environment: Option<EnvironmentId>,
    /// The stores attached, each with its access.
    pub stores: Vec<(StoreId, Access)>,
    /// What it may do there at most: nothing that the key could not do that it was made with.
    pub permissions: Permissions,
}

/// What a caller showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// An API key.
    Key {
        /// Which.
        key: KeyId,
        /// What it may do.
        grant: Grant,
        /// Whether its workspace is the installation's first.
        first_workspace: bool,
        /// Who uses it at the console, where the key names a person: what is written there is that person's.
        person: Option<UserId>,
    },
    /// The key of an environment, as its workers hold it.
    Environment {
        /// Which.
        key: EnvironmentKeyId,
        /// The environment.
        environment: EnvironmentId,
    },
    /// A token of a session, as its sandbox holds it.
    Session(Arc<SessionScope>),
}

/// Who asks: an authenticated principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The workspace that it belongs to; nothing outside it exists for the caller.
    pub workspace: WorkspaceId,
    /// What it showed.
    pub principal: Principal,
}

/// The caller lacks a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this key may not do that: it needs {}", .0.describe())]
pub struct Forbidden(pub Requirement);

impl Requirement {
    /// Its name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Permission(permission) => permission.as_str(),
            Self::Admin => "admin",
            Self::InstallationAdmin => "installation_admin",
            Self::ApiKey => "api_key",
            Self::Worker => "worker",
            Self::ReadWrite => "read_write",
        }
    }

    /// What it asks for, in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Permission(Permission::Read) => "the read permission",
            Self::Permission(Permission::Create) => "the create permission",
            Self::Permission(Permission::Update) => "the update permission",
            Self::Permission(Permission::Delete) => "the delete permission",
            Self::Admin => "the admin role",
            Self::InstallationAdmin => "the admin role in the first workspace",
            Self::ApiKey => "an API key",
            Self::Worker => "the key of this environment, or a token of the session that is worked on",
            Self::ReadWrite => "a store that is attached read_write",
        }
    }
}

impl Caller {
    /// Judges `action` on `resource` by the table, before anything is looked up.
    ///
    /// # Errors
    /// What the caller lacks.
    pub fn may(&self, resource: Resource, action: Action) -> Result<(), Forbidden> {
        let needs = requirement(resource, action).expect("callers ask only for what the table has");
        let (allowed, lacks) = match &self.principal {
            Principal::Key { grant, first_workspace, .. } => {
                let allowed = match needs {
                    Requirement::Permission(permission) => grant.permissions().has(permission),
                    Requirement::Admin => grant.is_admin(),
                    Requirement::InstallationAdmin => grant.is_admin() && *first_workspace,
                    Requirement::ApiKey | Requirement::Worker | Requirement::ReadWrite => false,
                };
                (allowed, needs)
            }
            Principal::Environment { .. } => (narrow(resource, action).environment_key, Requirement::ApiKey),
            Principal::Session(_) => {
                let lacks = if needs == Requirement::Worker { needs } else { Requirement::ApiKey };
                (narrow(resource, action).session_token, lacks)
            }
        };
        if allowed { Ok(()) } else { Err(Forbidden(lacks)) }
    }

    /// Judges `action` on a `resource` of `store`: for the holder of a session's token other stores than the attached
    /// ones do not exist, and one attached read_only is not written.
    ///
    /// # Errors
    /// What the caller lacks, or that there is no such store for it.
    pub fn may_in(&self, store: StoreId, resource: Resource, action: Action) -> Result<(), Refusal> {
        self.may(resource, action)?;
        let Principal::Session(scope) = &self.principal else { return Ok(()) };
        let attached = scope.stores.iter().find(|(id, _)| *id == store);
        match attached {
            None => Err(Refusal::StoreNotFound(store)),
            Some((_, Access::ReadOnly)) if action != Action::Read => {
                Err(Forbidden(Requirement::ReadWrite).into())
            }
            Some(_) => match requirement(resource, action) {
                Some(needs @ Requirement::Permission(permission)) if !scope.permissions.has(permission) => {
                    Err(Forbidden(needs).into())
                }
                _ => Ok(()),
            },
        }
    }

    /// The author that history records for this caller's writes.
    pub fn actor(&self) -> Actor {
        match &self.principal {
            Principal::Key { person: Some(user), .. } => Actor::User(*user),
            Principal::Key { key, .. } => Actor::ApiKey(*key),
            // Workers write no memory with their standing key; whatever else is recorded of them is a workload's.
            Principal::Environment { key, .. } => {
                Actor::ServiceAccount(ServiceAccountId::from_bytes(*key.as_bytes()))
            }
            Principal::Session(scope) => Actor::Session(scope.session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn caller(grant: Grant, first_workspace: bool) -> Caller {
        let at = Timestamp::from_micros(1);
        let principal = Principal::Key { key: KeyId::mint(at, 1), grant, first_workspace, person: None };
        Caller { workspace: WorkspaceId::mint(at, 1), principal }
    }

    #[test]
    fn a_token_does_no_more_than_the_key_that_it_was_made_with() {
        let store = StoreId::from_bytes([4; 16]);
        let mut token = session(vec![(store, Access::ReadWrite)]);
        assert!(token.may_in(store, Resource::Memory, Action::Delete).is_ok());
        if let Principal::Session(scope) = &mut token.principal {
            Arc::make_mut(scope).permissions = Permissions::of([Permission::Read, Permission::Update]);
        }
        assert!(token.may_in(store, Resource::Memory, Action::Update).is_ok());
        for action in [Action::Create, Action::Delete] {
            assert!(matches!(token.may_in(store, Resource::Memory, action), Err(Refusal::Forbidden(_))));
        }
    }

    fn session(stores: Vec<(StoreId, Access)>) -> Caller {
        let scope = SessionScope {
            token: SessionTokenId::from_bytes([1; 16]),
            session: SessionId::from_bytes([2; 16]),
            item: None,
            environment: None,
            stores,
            permissions: Permissions::of(Permission::ALL),
        };
        Caller { workspace: WorkspaceId::from_bytes([3; 16]), principal: Principal::Session(Arc::new(scope)) }
    }

    fn worker() -> Caller {
        let (key, environment) = (EnvironmentKeyId::from_bytes([4; 16]), EnvironmentId::from_bytes([5; 16]));
        Caller {
            workspace: WorkspaceId::from_bytes([3; 16]),
            principal: Principal::Environment { key, environment },
        }
    }

    #[test]
    fn the_whole_table_of_roles_actions_and_resources() {
        let mut table = String::new();
        for resource in Resource::ALL {
            for action in Action::ALL {
                if requirement(resource, action).is_none() {
                    assert_eq!(narrow(resource, action), Narrow::default(), "{action:?} {resource:?}");
                    continue;
                }
                let roles = Role::ALL
                    .into_iter()
                    .filter(|role| caller(Grant::Role(*role), true).may(resource, action).is_ok())
                    .map(Role::as_str);
                let narrow = [("environment_key", worker()), ("session_token", session(Vec::new()))];
                let narrow =
                    narrow.iter().filter(|(_, who)| who.may(resource, action).is_ok()).map(|(name, _)| *name);
                let allowed: Vec<_> = roles.chain(narrow).collect();
                table += &format!("{:<34}{}\n", format!("{action:?} {resource:?}"), allowed.join(" "));
            }
        }
        insta::assert_snapshot!(table);
    }

    /// spec/anthropic.md 12.1: exactly the attachments, each in its access.
    #[test]
    fn a_token_reaches_its_attachments_in_their_access_and_no_other_store() {
        let [rw, ro, other] = [1, 2, 3].map(|n| StoreId::from_bytes([n; 16]));
        let token = session(vec![(rw, Access::ReadWrite), (ro, Access::ReadOnly)]);
        for action in [Action::Create, Action::Update, Action::Delete] {
            assert_eq!(token.may_in(rw, Resource::Memory, action), Ok(()));
            let refused = Err(Refusal::Forbidden(Forbidden(Requirement::ReadWrite)));
            assert_eq!(token.may_in(ro, Resource::Memory, action), refused);
            assert_eq!(token.may_in(other, Resource::Memory, action), Err(Refusal::StoreNotFound(other)));
        }
        for resource in [Resource::Memory, Resource::Version] {
            assert_eq!(token.may_in(ro, resource, Action::Read), Ok(()));
            assert_eq!(token.may_in(other, resource, Action::Read), Err(Refusal::StoreNotFound(other)));
        }
        let redact = token.may_in(rw, Resource::Version, Action::Redact);
        assert_eq!(redact, Err(Refusal::Forbidden(Forbidden(Requirement::ApiKey))));
        assert!(token.may_in(rw, Resource::Store, Action::Read).is_err(), "not the store itself");
        assert_eq!(token.actor(), Actor::Session(SessionId::from_bytes([2; 16])));
    }

    #[test]
    fn an_explicit_set_allows_just_itself() {
        let redactor = caller(Grant::Permissions(Permissions::of([Permission::Delete])), true);
        assert!(redactor.may(Resource::Version, Action::Redact).is_ok());
        assert!(redactor.may(Resource::Version, Action::Read).is_err());
        let all = caller(Grant::Permissions(Permissions::of(Permission::ALL)), true);
        assert!(all.may(Resource::ApiKey, Action::Create).is_err());
    }

    #[test]
    fn workspaces_belong_to_admins_of_the_first_one() {
        let elsewhere = caller(Grant::Role(Role::Admin), false);
        assert!(elsewhere.may(Resource::ApiKey, Action::Create).is_ok());
        assert!(elsewhere.may(Resource::Workspace, Action::Create).is_err());
    }
}
