"""Who may do what: one table, pure.

A person acts through an `Actor`: the person, the roles in teams, the role on the site, and what a
token narrows. Every selector and service asks the actor, nobody compares roles by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Role(StrEnum):
    """A person's role in one team; each includes the ones before it."""

    VIEWER = "viewer"
    MEMBER = "member"
    MANAGER = "manager"


class SiteRole(StrEnum):
    """A person's role on the whole site, beside the roles in teams."""

    NONE = ""
    AUDITOR = "auditor"
    ADMIN = "admin"


class Scope(StrEnum):
    """What an API token may do at most; a browser session has all of them."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class Permission(StrEnum):
    """Something that the portal lets a person do."""

    TEAM_VIEW = "team.view"
    TEAM_EDIT = "team.edit"
    TEAM_CREATE = "team.create"
    MEMBERS_EDIT = "members.edit"
    SECRETS_EDIT = "secrets.edit"
    LIMITS_LOWER = "limits.lower"
    LIMITS_RAISE = "limits.raise"
    NOTICES_EDIT = "notices.edit"
    DEFINITIONS_EDIT = "definitions.edit"
    JOBS_LAUNCH = "jobs.launch"
    JOBS_STOP_ANY = "jobs.stop_any"
    TOKENS_BIND = "tokens.bind"
    SITE_VIEW = "site.view"
    SITE_EDIT = "site.edit"


_VIEWER = frozenset({Permission.TEAM_VIEW, Permission.TOKENS_BIND})
_MEMBER = _VIEWER | {Permission.JOBS_LAUNCH}
_MANAGER = _MEMBER | {
    Permission.TEAM_EDIT,
    Permission.MEMBERS_EDIT,
    Permission.SECRETS_EDIT,
    Permission.LIMITS_LOWER,
    Permission.NOTICES_EDIT,
    Permission.DEFINITIONS_EDIT,
    Permission.JOBS_STOP_ANY,
}
BY_ROLE: Mapping[Role, frozenset[Permission]] = {
    Role.VIEWER: _VIEWER,
    Role.MEMBER: _MEMBER,
    Role.MANAGER: _MANAGER,
}
BY_SITE_ROLE: Mapping[SiteRole, frozenset[Permission]] = {
    SiteRole.NONE: frozenset(),
    SiteRole.AUDITOR: frozenset({Permission.TEAM_VIEW, Permission.SITE_VIEW}),
    SiteRole.ADMIN: frozenset(Permission),
}
SITE_WIDE = frozenset({Permission.TEAM_CREATE, Permission.SITE_VIEW, Permission.SITE_EDIT})
READING = frozenset({Permission.TEAM_VIEW, Permission.SITE_VIEW})
# What needs the scope `admin`: it changes the site as a whole.
NEEDS_ADMIN_SCOPE = frozenset(
    {Permission.TEAM_CREATE, Permission.SITE_EDIT, Permission.LIMITS_RAISE}
)


def scope_for(permission: Permission) -> Scope:
    """Return the scope that a token must carry to use the permission."""
    if permission in NEEDS_ADMIN_SCOPE:
        return Scope.ADMIN
    return Scope.READ if permission in READING else Scope.WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A person as the portal sees one request: roles, narrowed by the token if there is one."""

    user_id: str
    email: str
    name: str = ""
    site_role: SiteRole = SiteRole.NONE
    roles: Mapping[str, Role] = field(default_factory=dict)
    """Team id → role."""
    slugs: Mapping[str, str] = field(default_factory=dict)
    """Team id → slug, of the same teams."""
    scopes: frozenset[Scope] | None = None
    """What the token allows; `None` for a browser session."""
    token_id: str | None = None
    token_prefix: str = ""
    bound_team_id: str | None = None
    """The one team that the token is bound to, or `None`."""

    @property
    def is_site_wide(self) -> bool:
        """The actor sees every team: admin or auditor, by a token that is bound to none."""
        return self.site_role is not SiteRole.NONE and self.bound_team_id is None

    @property
    def via(self) -> str:
        """How the actor came in, for the audit log."""
        return f"token {self.token_prefix}" if self.token_id else "session"

    def has_scope(self, scope: Scope) -> bool:
        """Tell whether the token carries the scope; `admin` includes `write`, `write` `read`."""
        if self.scopes is None:
            return True
        order = list(Scope)
        return any(order.index(held) >= order.index(scope) for held in self.scopes)

    def can(self, permission: Permission, *, team_id: str | None = None) -> bool:
        """Tell whether the actor may do this, in the team if the permission belongs to teams."""
        if not self.has_scope(scope_for(permission)):
            return False
        if self.bound_team_id is not None and team_id != self.bound_team_id:
            return False
        if permission in BY_SITE_ROLE[self.site_role]:
            return True
        if permission in SITE_WIDE or team_id is None:
            return False
        role = self.roles.get(team_id)
        return role is not None and permission in BY_ROLE[role]
