"""Nobody sees or changes what is not theirs: every route × method × persona against the table."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from django.core.cache import cache
from django.db import connection, transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from clusters import services as clusters
from clusters.selectors import facts_of
from jobs.selectors import newest_of
from jobs.services import definitions, jobs
from jobs.services.jobs import Wanted
from portal import health
from portal.notices import services as notices
from portal.notices.values import LevelName
from portal.routing import websocket_urlpatterns
from portal.teams.roles import Scope
from portal.teams.services import members, secrets, tokens
from tests.people import PERSONAS, World, api_client, browser, make_world
from tests.walks.policy import ABSENT, ROUTES, SOCKETS, Answer, Caller

pytestmark = pytest.mark.django_db
METHODS = ("GET", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
SAFE = {"GET", "OPTIONS"}
REST = "/api/v1/"
ASK_ALL = {"anonymous", "other", "admin"}  # the rest ask by the methods of the table alone
SAYS_401 = {"socialaccount_login_error"}  # with a page that says what went wrong
MARK = "quokka"  # in every name of the team, and never in an answer to others
HOOK = f"https://93.184.216.34/{MARK}"
WRITES = re.compile(r'(?:INSERT INTO|UPDATE|DELETE FROM) "((?:teams|notices|jobs|billing)_\w+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One route of the tree with an address in the world of the test."""

    name: str
    path: str


def routes(patterns: Any = None, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every route of the tree: name (or its path), and the path with its placeholders."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, path)
        else:
            assert isinstance(pattern, URLPattern)
            yield pattern.name or path, path


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """The world with one thing of each kind, the addresses of all routes and bodies for them."""

    world: World
    places: list[Place]
    bodies: dict[str, dict[str, Any]]


@pytest.fixture
def scene(monkeypatch) -> Scene:
    monkeypatch.setattr(health, "ECHO_SECONDS", 0.01)
    world = make_world(slug="vision")
    manager, viewer = world.actor("manager"), world.actor("viewer")
    team = world.team
    type(team).objects.filter(pk=team.pk).update(name=MARK)
    address = EmailAddress.objects.create(user=world.people["viewer"], email="second@example.org")
    invited = members.add_member(manager, team, email=f"{MARK}@example.net", role="viewer")
    secret = secrets.create_secret(manager, team, name=MARK, value=MARK)
    own = tokens.create_token(viewer, name=MARK, scopes=["read"])
    bound = tokens.create_token(viewer, name=MARK, scopes=["read"], team=team)
    route = notices.create_route(manager, team=team, kind="webhook", name=MARK, target=HOOK).row
    delivery = notices.test_route(manager, route)
    notices.set_level(MARK, LevelName.BAD, {"message": MARK}, team=team)
    spec = {"regime": "smoke", "time_limit_seconds": 60, "command": [MARK]}
    definition = definitions.create_definition(manager, team, slug=MARK, name=MARK, spec=spec)
    cluster = clusters.ensure_local()
    cluster.teams.add(team)
    type(cluster).objects.update(is_shared=False)
    job = jobs.submit(
        world.actor("member"),
        Wanted(version=newest_of(definition), team=team, cluster=facts_of(cluster)),
    )
    member = world.people["member"]
    values = {
        "slug": team.slug,
        "user": member.pk,
        "name": secret.name,
        "invitation": invited.invitation.pk,
        "route": route.pk,
        "delivery": delivery.pk,
        "definition": definition.pk,
        "job": job.pk,
        "cluster": cluster.slug,
        "provider_id": "oidc",
        "key": EmailConfirmationHMAC(address).key,
        "uidb36": "1",
    }
    texts = {"invite": invited.token, "team-token-revoke": bound.row.pk}

    def fill(name: str, path: str) -> str:
        named = {**values, "token": texts.get(name, own.row.pk)}
        path = path.replace("^", "").replace("$", "").replace("\\", "")
        path = re.sub(r"\(\?P<(\w+)>(?:\[[^]]*\]|.)\+?\)", lambda m: named[m[1]], path)
        return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda m: named[m[1]], path)

    places = [Place(name=name, path=fill(name, path)) for name, path in routes()]
    return Scene(world=world, places=places, bodies=_bodies(team.slug))


def _bodies(slug: str) -> dict[str, dict[str, Any]]:
    """Route → the smallest valid body of its writing methods; the others get an empty one."""
    token = {"name": "new", "scopes": ["read"]}
    person = {"email": "new@example.net", "role": "viewer"}
    secret = {"name": "NEW", "value": "new"}
    settings = {"name": "new", "time_zone": "UTC"}
    route = {"name": "new", "kind": "mail", "target": "new@example.net", "min_level": "bad"}
    spec = {"regime": "smoke", "time_limit_seconds": 90, "command": ["true"]}
    return {
        "api-me": {"name": "new"},
        "api-definitions": {"team": slug, "slug": "new", "name": "new", "spec": spec},
        "api-definition": {"spec": spec},
        "launch": {
            "team": slug,
            "cluster": "local",
            "time_limit_seconds": "9",
            "resources.nodes": "1",
            "resources.gpus_per_node": "0",
            "resources.cpus_per_node": "1",
        },
        "api-cluster": {"name": "new"},
        "cluster": {"name": "new"},
        "api-jobs": {"team": slug, "definition": MARK, "cluster": "local"},
        "api-job-preview": {"team": slug, "definition": MARK, "cluster": "local"},
        "api-jobs-stop": {"ids": [MARK]},
        "api-job": {"name": "new"},
        "definition": {"name": "new", "spec": json.dumps(spec)},
        "definition-check": {"spec": "{}"},
        "api-teams": {"slug": "new", "name": "new"},
        "api-team": {"name": "new"},
        "api-members": person,
        "api-member": {"role": "viewer"},
        "api-secrets": secret,
        "api-secret": {"value": "new"},
        "api-quotas": {"gpus": 1},
        "api-tokens": token,
        "api-user": {"site_role": "auditor"},
        "api-webhooks": {"team": slug, "kind": "webhook", "name": "new", "target": HOOK},
        "api-webhook": {"name": "new"},
        "team": person,
        "team-member-role": {"role": "viewer"},
        "team-secrets": secret,
        "team-secret": {"value": "new"},
        "team-settings": settings,
        "team-quotas": {"gpus": "1"},
        "me": {**token, "expires": "30"},
        "team-notices": route,
        "admin-notices": route,
        "route": route,
        "admin-team-new": {"slug": "new", **settings},
        "admin-user": {"site_role": "auditor"},
        "invite": {"name": "new", "password": "a long enough passphrase"},
    }


@contextmanager
def undone() -> Iterator[set[str]]:
    """Undo what is done inside; gives the tables that were written."""
    written: set[str] = set()

    def watch(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        if found := WRITES.match(sql):
            written.add(found[1])
        return execute(sql, params, many, context)

    with transaction.atomic(), connection.execute_wrapper(watch):
        yield written
        transaction.set_rollback(True)


def answer_of(response: Any, *, name: str) -> Answer | str:
    """What the response says, or its status when it says nothing that may ever be said."""
    status = response.status_code
    if name == "readyz":
        return Answer.YES  # no worker runs here, so 503 is the truth
    to_login = status == 302 and response["Location"].startswith("/account/login/?next=")
    if (status == 401 and name not in SAYS_401) or to_login:
        return Answer.LOGIN
    if status >= 500:
        return str(status)
    words = {403: Answer.REFUSED, 404: Answer.HIDDEN, 405: Answer.NO_METHOD}
    return words.get(status, Answer.YES)


def faults(caller: Caller, client: Client, scene: Scene, below: str) -> list[str]:
    """Every route and method whose answer is not what the table says."""
    found = []
    asks_all = caller.scopes is None and caller.persona in ASK_ALL
    for place in scene.places:
        cache.clear()  # throttles are tested elsewhere
        if place.name in ROUTES and place.path.startswith(below):
            for method in METHODS if asks_all else ROUTES[place.name]:
                found += _faults_of(caller, client, place, method, scene)
    return found


def _faults_of(
    caller: Caller, client: Client, place: Place, method: str, scene: Scene
) -> list[str]:
    is_safe = method in SAFE
    body = {} if is_safe else scene.bodies.get(place.name, {})
    is_rest = place.path.startswith(REST)
    kind = {"content_type": "application/json"} if is_rest and not is_safe else {}
    cookies = deepcopy(client.cookies)
    with undone() as written:
        response = getattr(client, method.lower())(place.path, body, **kind)
        content = response.getvalue().decode()
    client.cookies = cookies  # a sign-out is undone too
    got = answer_of(response, name=place.name)
    where = f"{caller.persona} {method} {place.path}: {response.status_code}"
    problems = []
    expected = expected_of(place.name, method, caller)
    if got not in expected:
        problems.append(f"{where}, expected {sorted(expected)}")
    harmless = {"teams_apitoken"} if caller.scopes is not None else set()  # its last use
    if (is_safe or got is not Answer.YES) and written - harmless:
        problems.append(f"{where}, and yet wrote {written}")
    blind = caller.persona in {"anonymous", "other"} or caller.is_bound_elsewhere
    if blind and place.name != "invite" and MARK in content.lower():
        problems.append(f"{where}, tells of another team")
    return problems


def expected_of(name: str, method: str, caller: Caller) -> set[Answer]:
    """What the table allows; a method without a line is refused in any way, or reads like GET."""
    policies = ROUTES[name]
    declared = policies.get(method)
    if declared is not None:
        return {declared.expect(caller)}
    refusals = {Answer.NO_METHOD, Answer.LOGIN, Answer.REFUSED, Answer.HIDDEN}
    return refusals | ({policies["GET"].expect(caller)} if "GET" in policies else set())


def check(caller: Caller, client: Client, scene: Scene, below: str = "/") -> None:
    wrong = faults(caller, client, scene, below)
    assert not wrong, "\n".join(wrong)


def test_every_route_and_socket_has_a_policy_and_every_policy_one_of_them():
    assert {name for name, _ in routes()} == set(ROUTES)
    assert {pattern.name for pattern in websocket_urlpatterns} == set(SOCKETS)


@pytest.mark.parametrize("persona", PERSONAS)
def test_pages_and_rest_by_session(scene, persona):
    """Over 300 ms: sends every route × method as one persona."""
    caller = Caller(persona=persona)
    check(caller, browser(scene.world.people[persona]), scene)


@pytest.mark.parametrize("scope", ["admin", "write", "read"])
@pytest.mark.parametrize("persona", PERSONAS[1:])
def test_rest_by_token(scene, persona, scope):
    """Over 300 ms: sends every REST route × method by a token of one scope."""
    caller = Caller(persona=persona, scopes=frozenset({Scope(scope)}))
    client = api_client(scene.world.people[persona], scopes=[scope])
    check(caller, client, scene, below=REST)


@pytest.mark.parametrize("persona", ["admin", "manager"])
def test_rest_by_a_token_of_another_team(scene, persona):
    """Over 300 ms: sends every REST route × method by a token that is bound elsewhere."""
    user = scene.world.people[persona]
    members.add_member(
        scene.world.actor("admin"), scene.world.other, email=user.email, role="manager"
    )
    client = api_client(user, scopes=["admin"], team=scene.world.other)
    caller = Caller(persona=persona, scopes=frozenset({Scope.ADMIN}), is_bound_elsewhere=True)
    check(caller, client, scene, below=REST)


@pytest.mark.parametrize("prefix", ["/teams/", "/api/v1/teams/"])
def test_what_does_not_exist_and_what_is_hidden_look_alike(scene, prefix):
    client = browser(scene.world.people["other"])
    hidden, absent = client.get(f"{prefix}vision"), client.get(f"{prefix}nobody")
    assert hidden.status_code == absent.status_code == 404
    if prefix.startswith("/api"):
        differ = {"request_id"}
        told = [{k: v for k, v in r.json().items() if k not in differ} for r in (hidden, absent)]
        assert told[0] == told[1]


def test_a_provider_that_is_not_configured_is_absent():
    assert ROUTES["openid_connect_login"]["GET"] is ABSENT
