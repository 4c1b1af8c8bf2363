"""Every page asks the database the same few questions, whatever the length of what it shows."""

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from clusters.selectors import facts_of
from clusters.services import ensure_local
from jobs.selectors import newest_of
from jobs.services import definitions, jobs
from jobs.services.jobs import Wanted
from portal.notices import services as notices
from portal.notices.values import LevelName
from portal.teams.services import members, secrets, tokens
from tests.people import World, browser, join, make_team, make_user, make_world
from tests.walks.policy import ROUTES

pytestmark = pytest.mark.django_db
MAIL = {"kind": "mail", "target": "ops@example.org"}
SPEC = {"regime": "smoke", "time_limit_seconds": 60, "command": ["true"]}

# Route → its address, and the queries of a visit. Five of them are for every signed-in person:
# session, person, memberships, teams to switch between, and the bell.
PAGES = {
    "dashboard": ("/", 9),
    "notices": ("/notices", 7),
    "definitions": ("/definitions", 8),
    "definition-new": ("/definitions/new?from={definition}", 8),
    "definition": ("/definitions/{definition}", 11),
    "launch": ("/definitions/{definition}/launch", 10),
    "jobs": ("/jobs", 9),
    "jobs-rows": ("/jobs/rows?job={job}&newest={job}", 7),
    "launch-choose": ("/launch", 8),
    "job": ("/jobs/{job}", 6),
    "job-story": ("/jobs/{job}/story", 9),
    "job-metrics": ("/jobs/{job}/metrics", 6),
    "job-script": ("/jobs/{job}/script", 6),
    "clusters": ("/clusters", 7),
    "cluster": ("/clusters/local", 11),
    "definition-export": ("/definitions/{definition}/export", 5),
    "team": ("/teams/vision", 10),
    "team-secrets": ("/teams/vision/secrets", 9),
    "team-secret": ("/teams/vision/secrets/S0", 8),
    "team-tokens": ("/teams/vision/tokens", 9),
    "team-events": ("/teams/vision/events", 9),
    "team-settings": ("/teams/vision/settings", 7),
    "team-quotas": ("/teams/vision/quotas", 9),
    "team-notices": ("/teams/vision/notices", 9),
    "route": ("/notices/routes/{route}", 9),
    "admin-notices": ("/admin/notices", 7),
    "admin-teams": ("/admin/teams", 7),
    "admin-team-new": ("/admin/teams/new", 5),
    "admin-users": ("/admin/users", 7),
    "admin-audit": ("/admin/audit", 8),
    "me": ("/me", 8),
    "palette": ("/palette?q=person", 7),
    "api-docs": ("/api/docs", 5),
    "invite": ("/invite/{invitation}", 2),
}
OF_ALLAUTH = ("account", "mfa_", "openid_connect", "socialaccount", "usersessions")
NO_PAGES = {"healthz", "readyz", "metrics", "admin-audit-export"}


@pytest.fixture
def world() -> World:
    return make_world()


def fill(world: World, rows: int) -> dict[str, str]:
    """Make `rows` things of every kind in sight of the manager; return ids for the addresses."""
    manager, team, person = world.actor("manager"), world.team, world.people["manager"]
    admin, cluster = world.actor("admin"), ensure_local()
    cluster.teams.add(team)
    for number in range(rows):
        name = f"n{number}"
        elsewhere = make_team(name)
        join(elsewhere, person, role="manager")
        join(elsewhere, make_user(f"person-{name}"), role="member")
        join(team, make_user(f"another-{name}"), role="viewer")
        invited = members.add_member(manager, team, email=f"{name}@example.net", role="viewer")
        secrets.create_secret(manager, team, name=f"S{number}", value="x")
        tokens.create_token(manager, name=name, scopes=["read"], team=team)
        made = definitions.create_definition(manager, team, slug=name, name=name, spec=SPEC)
        for actor, scope in ((manager, team), (admin, None)):
            notices.set_level(name, LevelName.BAD, {"message": name}, team=scope)
            route = notices.create_route(actor, team=scope, name=name, **MAIL).row
    route = notices.create_route(manager, team=team, name="busy", **MAIL).row
    for number in range(rows):
        notices.test_route(manager, route)
        spec = {**SPEC, "time_limit_seconds": 61 + number}
        made = definitions.save_version(manager, made, spec=spec)
        wanted = Wanted(version=newest_of(made), team=team, cluster=facts_of(cluster))
        job = jobs.submit(manager, wanted)
    return {
        "invitation": invited.token,
        "definition": made.pk,
        "route": route.pk,
        "job": job.pk,
    }


def queries_of(client: Client, path: str) -> list[str]:
    client.get(path)  # the first visit notes the browser and fills caches
    with CaptureQueriesContext(connection) as asked:
        answer = client.get(path)
    assert answer.status_code == 200, path
    return [query["sql"] for query in asked.captured_queries]


def persona_of(name: str) -> str:
    allowed = ROUTES[name]["GET"].allowed
    return next(who for who in ("anonymous", "manager", "admin") if who in allowed)


@pytest.mark.parametrize("rows", [2, 20])
def test_a_page_asks_the_same_queries_whatever_its_length(world, rows) -> None:
    """It takes seconds, and finds the loop that asks for each row on every page there is."""
    names = fill(world, rows)
    cache.clear()
    clients = {who: browser(world.people[who]) for who in ("anonymous", "manager", "admin")}
    asked = {
        name: queries_of(clients[persona_of(name)], path.format(**names))
        for name, (path, _) in PAGES.items()
    }
    counted = {name: len(found) for name, found in asked.items()}
    assert counted == {name: number for name, (_, number) in PAGES.items()}
    assert {sql.split()[0] for found in asked.values() for sql in found} == {"SELECT"}


def test_every_page_is_counted() -> None:
    read = {name for name, methods in ROUTES.items() if "GET" in methods}
    elsewhere = {name for name in read if name.startswith(("api-", *OF_ALLAUTH))} - {"api-docs"}
    assert read - elsewhere - NO_PAGES == set(PAGES)
