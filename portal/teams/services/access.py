"""The two questions that every service asks first."""

from portal.core.errors import NotAllowed
from portal.teams.models import Team
from portal.teams.roles import Actor, Permission
from portal.teams.selectors import see

_WHO = {
    Permission.TEAM_VIEW: "a member of the team",
    Permission.TEAM_CREATE: "a site admin",
    Permission.LIMITS_RAISE: "a site admin",
    Permission.SITE_EDIT: "a site admin",
    Permission.SITE_VIEW: "a site admin or auditor",
}


def require(actor: Actor, permission: Permission, *, team: Team | None = None) -> None:
    """Raise `NotFound` if the actor may not even see the team, `NotAllowed` if not do this."""
    team_id = team.pk if team else None
    if team is not None:
        see(actor, team)
    if actor.can(permission, team_id=team_id):
        return
    who = _WHO.get(permission, "a manager of the team or a site admin")
    if actor.scopes is not None:
        who += ", with a token that has the scope for it"
    raise NotAllowed("not_allowed", f"Only {who} may do this.", permission=str(permission))
