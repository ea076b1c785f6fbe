//! Who may do what: four permissions, four roles, one table. DESIGN 6, spec/recursion.md 12.

use crate::id::{KeyId, WorkspaceId};
use crate::model::Actor;

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

    fn permissions(self) -> Permissions {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// What a caller does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// The table: what `action` on `resource` needs; `None` where there is no such thing to do.
pub const fn requirement(resource: Resource, action: Action) -> Option<Requirement> {
    use Action::*;
    use Requirement::Permission as Needs;
    let needs = match resource {
        Resource::Store => match action {
            Create => Needs(Permission::Create),
            Read => Needs(Permission::Read),
            Update | Archive => Needs(Permission::Update),
            Delete => Needs(Permission::Delete),
            Restore | Redact => return None,
        },
        Resource::Memory => match action {
            Create => Needs(Permission::Create),
            Read => Needs(Permission::Read),
            Update => Needs(Permission::Update),
            Delete => Needs(Permission::Delete),
            Archive | Restore | Redact => return None,
        },
        Resource::Version => match action {
            Read => Needs(Permission::Read),
            Restore => Needs(Permission::Update),
            Redact => Needs(Permission::Delete),
            Create | Update | Archive | Delete => return None,
        },
        Resource::ApiKey => match action {
            Create | Read | Delete => Requirement::Admin,
            Update | Archive | Restore | Redact => return None,
        },
        Resource::Workspace => match action {
            Create | Read | Update => Requirement::InstallationAdmin,
            Archive | Restore | Redact | Delete => return None,
        },
        Resource::Backup => match action {
            Create | Read | Update | Delete => Requirement::InstallationAdmin,
            Archive | Restore | Redact => return None,
        },
    };
    Some(needs)
}

/// Who asks: an authenticated principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The workspace that it belongs to; nothing outside it exists for the caller.
    pub workspace: WorkspaceId,
    /// The key that it showed.
    pub key: KeyId,
    /// What it may do.
    pub grant: Grant,
    /// Whether its workspace is the installation's first.
    pub first_workspace: bool,
}

/// The caller lacks a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this key may not do that: it needs {}", .0.describe())]
pub struct Forbidden(pub Requirement);

impl Requirement {
    /// What it asks for, in words.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Permission(Permission::Read) => "the read permission",
            Self::Permission(Permission::Create) => "the create permission",
            Self::Permission(Permission::Update) => "the update permission",
            Self::Permission(Permission::Delete) => "the delete permission",
            Self::Admin => "the admin role",
            Self::InstallationAdmin => "the admin role in the first workspace",
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
        let allowed = match needs {
            Requirement::Permission(permission) => self.grant.permissions().has(permission),
            Requirement::Admin => self.grant.is_admin(),
            Requirement::InstallationAdmin => self.grant.is_admin() && self.first_workspace,
        };
        if allowed { Ok(()) } else { Err(Forbidden(needs)) }
    }

    /// The author that history records for this caller's writes.
    pub fn actor(&self) -> Actor {
        Actor::ApiKey(self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn caller(grant: Grant, first_workspace: bool) -> Caller {
        let at = Timestamp::from_micros(1);
        Caller { workspace: WorkspaceId::mint(at, 1), key: KeyId::mint(at, 1), grant, first_workspace }
    }

    #[test]
    fn the_whole_table_of_roles_actions_and_resources() {
        use Action::*;
        let mut table = String::new();
        for resource in [
            Resource::Store,
            Resource::Memory,
            Resource::Version,
            Resource::ApiKey,
            Resource::Workspace,
            Resource::Backup,
        ] {
            for action in [Create, Read, Update, Archive, Restore, Redact, Delete] {
                if requirement(resource, action).is_none() {
                    continue;
                }
                let allowed: Vec<_> = Role::ALL
                    .into_iter()
                    .filter(|role| caller(Grant::Role(*role), true).may(resource, action).is_ok())
                    .map(Role::as_str)
                    .collect();
                table += &format!("{:<34}{}\n", format!("{action:?} {resource:?}"), allowed.join(" "));
            }
        }
        insta::assert_snapshot!(table);
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
