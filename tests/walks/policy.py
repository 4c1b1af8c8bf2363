"""The one policy table: who gets what from every route and method. A new route gets its line here.

`Policy.expect` derives the answer for each persona of `tests.people`, by session or by token.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from portal.teams.roles import Scope
from tests.people import IN_TEAM, ON_SITE, PERSONAS

SIGNED_IN_PEOPLE = frozenset(PERSONAS) - {"anonymous"}
SEEING_TEAM = frozenset({*IN_TEAM, *ON_SITE})


class Answer(StrEnum):
    """What a persona may expect."""

    YES = "yes: 2xx, 3xx, or a 4xx about the request itself"
    LOGIN = "sign in: 401, or a redirect to the login page"
    REFUSED = "refused: 403"
    HIDDEN = "hidden: 404"
    NO_METHOD = "no such method: 405"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks: a persona, and what a token narrows; `scopes=None` is a session."""

    persona: str
    scopes: frozenset[Scope] | None = None
    is_bound_elsewhere: bool = False

    def has(self, scope: Scope) -> bool:
        order = list(Scope)
        return self.scopes is None or any(order.index(s) >= order.index(scope) for s in self.scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who is allowed; for whom the thing does not exist; everybody else is refused."""

    allowed: frozenset[str]
    hidden: frozenset[str] = frozenset()
    scope: Scope = Scope.READ
    """What a token needs."""
    is_of_team: bool = False
    """The thing belongs to the team `vision`, so a token of another team does not see it."""
    is_of_site: bool = False
    """The thing belongs to no team, so no token that is bound to one may do it."""

    def expect(self, caller: Caller) -> Answer:
        if caller.persona == "anonymous" and caller.persona not in {*self.allowed, *self.hidden}:
            return Answer.LOGIN
        if not caller.has(min(self.scope, Scope.WRITE, key=list(Scope).index)):
            return Answer.REFUSED  # a token that may not write is refused before anything is sought
        if caller.persona in self.hidden or (self.is_of_team and caller.is_bound_elsewhere):
            return Answer.HIDDEN
        if caller.persona not in self.allowed or not caller.has(self.scope):
            return Answer.REFUSED
        if caller.is_bound_elsewhere and self.is_of_site:
            return Answer.REFUSED
        return Answer.YES


def _team(*allowed: str, scope: Scope, hidden: frozenset[str] = frozenset()) -> Policy:
    return Policy(
        allowed=frozenset(allowed),
        hidden=(hidden or frozenset({"other"})) - set(allowed),
        scope=scope,
        is_of_team=True,
    )


def _own(owner: str) -> Policy:
    return Policy(allowed=frozenset({owner}), hidden=SIGNED_IN_PEOPLE - {owner}, scope=Scope.WRITE)


PUBLIC = Policy(allowed=frozenset(PERSONAS))
ABSENT = Policy(allowed=frozenset(), hidden=frozenset(PERSONAS))
SIGNED_IN = Policy(allowed=SIGNED_IN_PEOPLE)
SIGNED_IN_WRITES = Policy(allowed=SIGNED_IN_PEOPLE, scope=Scope.WRITE)
MAKES_TOKEN = Policy(allowed=SIGNED_IN_PEOPLE, scope=Scope.WRITE, is_of_site=True)
SEES_TEAM = _team(*SEEING_TEAM, scope=Scope.READ)
SEES_TEAM_BY_WRITING = _team(*SEEING_TEAM, scope=Scope.WRITE)
MANAGES_TEAM = _team("manager", "admin", scope=Scope.WRITE)
EDITS_CLUSTER = Policy(
    allowed=frozenset({"admin"}),
    hidden=frozenset({"other"}),
    scope=Scope.ADMIN,
    is_of_team=True,
)
LAUNCHES = _team("member", "manager", "admin", scope=Scope.WRITE)
MANAGES_OR_LEAVES = _team("member", "manager", "admin", scope=Scope.WRITE)
ENDS_TOKEN_OF_VIEWER = _team(
    *("viewer", "manager", "admin"),
    scope=Scope.WRITE,
    hidden=frozenset({"other", "member", "auditor"}),
)
OWN_OF_VIEWER = _own("viewer")
SEES_SITE = Policy(allowed=frozenset(ON_SITE), is_of_site=True)
EDITS_SITE = Policy(allowed=frozenset({"admin"}), scope=Scope.ADMIN, is_of_site=True)

_GET_POST_PUBLIC = {"GET": PUBLIC, "POST": PUBLIC}
_GET_POST_SIGNED_IN = {"GET": SIGNED_IN, "POST": SIGNED_IN}

# Route name, or path where a route has none → method → policy.
ROUTES: Mapping[str, Mapping[str, Policy]] = {
    "dashboard": {"GET": SIGNED_IN},
    "palette": {"GET": SIGNED_IN},
    "healthz": {"GET": PUBLIC},
    "readyz": {"GET": PUBLIC},
    "metrics": {"GET": SEES_SITE},
    "api-docs": {"GET": SIGNED_IN},
    "api-schema": {"GET": PUBLIC},
    # REST of people and teams
    "api-me": {"GET": SIGNED_IN, "PATCH": SIGNED_IN_WRITES},
    "api-teams": {"GET": SIGNED_IN, "POST": EDITS_SITE},
    "api-team": {"GET": SEES_TEAM, "PATCH": MANAGES_TEAM},
    "api-members": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    "api-member": {"PATCH": MANAGES_TEAM, "DELETE": MANAGES_OR_LEAVES},
    "api-invitations": {"GET": SEES_TEAM},
    "api-invitation": {"DELETE": MANAGES_TEAM},
    "api-secrets": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    "api-secret": {"PUT": MANAGES_TEAM, "DELETE": MANAGES_TEAM},
    "api-events": {"GET": SEES_TEAM},
    "api-quotas": {"GET": SEES_TEAM, "PUT": MANAGES_TEAM},
    "api-tokens": {"GET": SIGNED_IN, "POST": MAKES_TOKEN},
    "api-token": {"DELETE": OWN_OF_VIEWER},
    "api-users": {"GET": SEES_SITE},
    "api-user": {"GET": SEES_SITE, "PATCH": EDITS_SITE},
    "api-audit": {"GET": SEES_SITE},
    # REST of jobs
    "api-definitions": {"GET": SIGNED_IN, "POST": MANAGES_TEAM},
    "api-definition": {"GET": SEES_TEAM, "PUT": MANAGES_TEAM, "DELETE": MANAGES_TEAM},
    "api-definition-versions": {"GET": SEES_TEAM},
    "api-clusters": {"GET": SIGNED_IN},
    "api-cluster": {"GET": SEES_TEAM, "PATCH": EDITS_CLUSTER},
    "api-cluster-nodes": {"GET": SEES_TEAM},
    "api-cluster-check": {"POST": SEES_TEAM_BY_WRITING},
    "api-jobs": {"GET": SIGNED_IN, "POST": LAUNCHES},
    "api-job": {"GET": SEES_TEAM, "PATCH": LAUNCHES},
    "api-job-preview": {"POST": LAUNCHES},
    "api-jobs-stop": {"POST": SIGNED_IN_WRITES},
    "api-job-resume": {"POST": LAUNCHES},
    "api-job-report": {"GET": SEES_TEAM},
    "api-job-stop": {"POST": LAUNCHES},
    "api-job-retry": {"POST": LAUNCHES},
    "api-job-events": {"GET": SEES_TEAM},
    "api-job-logs": {"GET": SEES_TEAM},
    "api-job-logs-search": {"GET": SEES_TEAM},
    "api-job-metrics": {"GET": SEES_TEAM},
    # REST of notices
    "api-notices": {"GET": SIGNED_IN},
    "api-webhooks": {"GET": SIGNED_IN, "POST": MANAGES_TEAM},
    "api-webhook": {"GET": SEES_TEAM, "PATCH": MANAGES_TEAM, "DELETE": MANAGES_TEAM},
    "api-webhook-test": {"POST": MANAGES_TEAM},
    "api-webhook-deliveries": {"GET": SEES_TEAM},
    "api-replay": {"POST": MANAGES_TEAM},
    # Pages of teams
    "team": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    "team-member-role": {"POST": MANAGES_TEAM},
    "team-member-remove": {"POST": MANAGES_OR_LEAVES},
    "team-invitation-withdraw": {"POST": MANAGES_TEAM},
    "team-secrets": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    "team-secret": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    "team-secret-delete": {"POST": MANAGES_TEAM},
    "team-tokens": {"GET": SEES_TEAM},
    "team-token-revoke": {"POST": ENDS_TOKEN_OF_VIEWER},
    "team-events": {"GET": SEES_TEAM},
    "team-settings": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    "team-quotas": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    # Pages of clusters and jobs
    "clusters": {"GET": SIGNED_IN},
    "cluster": {"GET": SEES_TEAM, "POST": EDITS_CLUSTER},
    "cluster-check": {"POST": SEES_TEAM_BY_WRITING},
    "jobs": {"GET": SIGNED_IN},
    "jobs-rows": {"GET": SIGNED_IN},
    "launch-choose": {"GET": SIGNED_IN},
    "job": {"GET": SEES_TEAM},
    "job-story": {"GET": SEES_TEAM},
    "job-metrics": {"GET": SEES_TEAM},
    "job-script": {"GET": SEES_TEAM},
    "job-stop": {"POST": LAUNCHES},
    "job-retry": {"POST": LAUNCHES},
    "job-resume": {"POST": LAUNCHES},
    "jobs-stop": {"POST": SIGNED_IN},
    "launch": {"GET": SEES_TEAM, "POST": LAUNCHES},
    "definitions": {"GET": SIGNED_IN},
    "definition-new": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "definition-check": {"POST": SIGNED_IN},
    "definition": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    "definition-delete": {"POST": MANAGES_TEAM},
    "definition-export": {"GET": SEES_TEAM},
    # Pages of notices
    "notices": {"GET": SIGNED_IN},
    "route": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    "route-test": {"POST": MANAGES_TEAM},
    "route-delete": {"POST": MANAGES_TEAM},
    "delivery-replay": {"POST": MANAGES_TEAM},
    "team-notices": {"GET": SEES_TEAM, "POST": MANAGES_TEAM},
    "admin-notices": {"GET": SEES_SITE, "POST": EDITS_SITE},
    # Pages of the own account and of the site
    "me": {"GET": SIGNED_IN, "POST": SIGNED_IN},
    "me-token-revoke": {"POST": OWN_OF_VIEWER},
    "me-sessions-end": {"POST": SIGNED_IN},
    "invite": _GET_POST_PUBLIC,
    "admin-teams": {"GET": SEES_SITE},
    "admin-team-new": {"GET": EDITS_SITE, "POST": EDITS_SITE},
    "admin-users": {"GET": SEES_SITE},
    "admin-user": {"POST": EDITS_SITE},
    "admin-audit": {"GET": SEES_SITE},
    "admin-audit-export": {"GET": SEES_SITE},
    # Pages of allauth
    "account_login": _GET_POST_PUBLIC,
    "account_logout": _GET_POST_PUBLIC,
    "account_inactive": {"GET": PUBLIC},
    "account_signup": _GET_POST_PUBLIC,
    "account_reauthenticate": _GET_POST_SIGNED_IN,
    "account_request_reauthentication_code": _GET_POST_SIGNED_IN,
    "account_confirm_reauthentication_code": _GET_POST_SIGNED_IN,
    "account_email": _GET_POST_SIGNED_IN,
    "account_email_verification_sent": {"GET": PUBLIC},
    "account_change_password": _GET_POST_SIGNED_IN,
    "account_set_password": _GET_POST_SIGNED_IN,
    "account_reset_password": _GET_POST_PUBLIC,
    "account_confirm_login_code": _GET_POST_PUBLIC,
    "account_confirm_email": _GET_POST_PUBLIC,
    "account_reset_password_from_key_done": {"GET": PUBLIC},
    "account_reset_password_from_key": _GET_POST_PUBLIC,
    "account_reset_password_done": {"GET": PUBLIC},
    "mfa_index": {"GET": SIGNED_IN},
    "mfa_authenticate": _GET_POST_PUBLIC,
    "mfa_reauthenticate": _GET_POST_SIGNED_IN,
    "socialaccount_login_cancelled": {"GET": PUBLIC},
    "socialaccount_login_error": {"GET": PUBLIC},
    "socialaccount_signup": _GET_POST_PUBLIC,
    "socialaccount_connections": _GET_POST_SIGNED_IN,
    "account/social/login/cancelled/": {"GET": PUBLIC},
    "account/social/login/error/": {"GET": PUBLIC},
    "account/social/signup/": {"GET": PUBLIC},
    "account/social/connections/": {"GET": PUBLIC},
    "openid_connect_login": {"GET": ABSENT, "POST": ABSENT},
    "openid_connect_callback": {"GET": ABSENT, "POST": ABSENT},
    "usersessions_list": _GET_POST_SIGNED_IN,
}

SOCKETS: Mapping[str, Policy] = {
    "ws-feed": SIGNED_IN,
    "ws-job-logs": SEES_TEAM,
    "ws-job-metrics": SEES_TEAM,
}
