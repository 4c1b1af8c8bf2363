"""The table of roles: pure, case by case."""

import pytest

from portal.teams.roles import Actor, Permission, Role, Scope, SiteRole, scope_for

TEAM, OTHER = "01TEAM", "01OTHER"
SEES = {Permission.TEAM_VIEW, Permission.TOKENS_BIND}
MANAGES = SEES | {
    Permission.TEAM_EDIT,
    Permission.MEMBERS_EDIT,
    Permission.SECRETS_EDIT,
    Permission.LIMITS_LOWER,
    Permission.NOTICES_EDIT,
    Permission.DEFINITIONS_EDIT,
    Permission.JOBS_LAUNCH,
    Permission.JOBS_STOP_ANY,
}
CASES = {
    "stranger": ({}, SiteRole.NONE, set()),
    "viewer": ({TEAM: Role.VIEWER}, SiteRole.NONE, SEES),
    "member": ({TEAM: Role.MEMBER}, SiteRole.NONE, SEES | {Permission.JOBS_LAUNCH}),
    "manager": ({TEAM: Role.MANAGER}, SiteRole.NONE, MANAGES),
    "manager of another": ({OTHER: Role.MANAGER}, SiteRole.NONE, set()),
    "auditor": ({}, SiteRole.AUDITOR, {Permission.TEAM_VIEW, Permission.SITE_VIEW}),
    "admin": ({}, SiteRole.ADMIN, set(Permission)),
}


def actor(roles=None, site_role=SiteRole.NONE, **narrowed) -> Actor:
    return Actor(
        user_id="01U", email="a@example.org", roles=roles or {}, site_role=site_role, **narrowed
    )


@pytest.mark.parametrize("name", CASES)
def test_what_each_role_may_do_in_a_team(name):
    roles, site_role, expected = CASES[name]
    who = actor(roles, site_role)
    assert {p for p in Permission if who.can(p, team_id=TEAM)} == expected


@pytest.mark.parametrize("site_role", SiteRole)
def test_a_permission_of_a_team_needs_the_team_unless_the_site_role_has_it(site_role):
    who = actor({TEAM: Role.MANAGER}, site_role)
    without = {p for p in Permission if who.can(p)}
    assert without == CASES[site_role or "stranger"][2]


def test_an_auditor_who_is_a_manager_keeps_both():
    who = actor({TEAM: Role.MANAGER}, SiteRole.AUDITOR)
    assert {p for p in Permission if who.can(p, team_id=TEAM)} == MANAGES | {Permission.SITE_VIEW}


@pytest.mark.parametrize(
    ("held", "has"),
    [
        (None, {Scope.READ, Scope.WRITE, Scope.ADMIN}),
        ([], set()),
        ([Scope.READ], {Scope.READ}),
        ([Scope.WRITE], {Scope.READ, Scope.WRITE}),
        ([Scope.ADMIN], {Scope.READ, Scope.WRITE, Scope.ADMIN}),
        ([Scope.READ, Scope.ADMIN], {Scope.READ, Scope.WRITE, Scope.ADMIN}),
    ],
)
def test_a_wider_scope_includes_the_narrower(held, has):
    who = actor(scopes=None if held is None else frozenset(held))
    assert {s for s in Scope if who.has_scope(s)} == has


@pytest.mark.parametrize("scope", Scope)
def test_a_token_of_an_admin_does_what_its_scope_allows_and_no_more(scope):
    who = actor({}, SiteRole.ADMIN, scopes=frozenset({scope}), token_id="01K")
    for permission in Permission:
        assert who.can(permission, team_id=TEAM) == who.has_scope(scope_for(permission))


@pytest.mark.parametrize("site_role", SiteRole)
def test_a_bound_token_knows_its_team_alone(site_role):
    who = actor({TEAM: Role.MANAGER, OTHER: Role.MANAGER}, site_role, bound_team_id=TEAM)
    assert who.can(Permission.TEAM_VIEW, team_id=TEAM)
    assert not any(who.can(p, team_id=OTHER) for p in Permission)
    assert not any(who.can(p) for p in Permission)
    assert not who.is_site_wide


def test_how_somebody_came_in():
    assert actor().via == "session"
    assert actor(token_id="01K", token_prefix="slw_abc").via == "token slw_abc"
