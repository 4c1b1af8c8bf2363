"""REST at its borders: problem+json everywhere, bad input, throttles, tokens, readiness."""

import json
from datetime import timedelta

import pytest
from django.core.cache import cache
from rest_framework.test import APIClient

from portal.core import clock
from portal.core.throttles import ReadThrottle, WriteThrottle
from portal.teams.models import ApiToken, Limit
from portal.teams.services import users
from tests.people import api_client, browser, make_world, token_of

pytestmark = pytest.mark.django_db
PROBLEM = "application/problem+json"
TEAMS = "/api/v1/teams"


@pytest.fixture(autouse=True)
def _no_throttle_from_before():
    cache.clear()


@pytest.fixture
def world(db):
    return make_world()


@pytest.fixture
def client(world):
    return api_client(world.people["admin"])


def problem_of(response, status):
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == PROBLEM
    body = response.json()
    assert {"type", "title", "status", "detail", "code", "facts", "request_id"} <= set(body)
    assert body["status"] == status
    assert body["request_id"]
    return body


def raw(client, method, path, body, kind="application/json"):
    return client.generic(method, path, body, content_type=kind)


# Shape of errors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/api/v1/nothing", "/api/nothing", "/api/v1/teams/", "/api/v2/me"]
)
def test_an_unknown_path_is_a_problem_too(client, path):
    assert problem_of(client.get(path), 404)["code"] == "not_found"


def test_other_errors_have_the_shape_as_well(client, world):
    assert problem_of(APIClient().get("/api/v1/me"), 401)["code"] == "not_authenticated"
    assert "Bearer" in APIClient().get("/api/v1/me").headers["WWW-Authenticate"]
    assert problem_of(client.delete(TEAMS), 405)["code"] == "method_not_allowed"
    assert problem_of(raw(client, "POST", TEAMS, "a=1", "application/x-www-form-urlencoded"), 415)
    assert problem_of(client.get("/api/v1/me", headers={"Accept": "text/csv"}), 406)
    assert problem_of(client.post(TEAMS, {"slug": "vision", "name": "x"}), 409)
    assert problem_of(client.patch("/api/v1/users/nobody", {"is_active": True}), 404)


def test_a_bug_of_ours_is_a_problem_with_an_id_and_no_traceback(client, world):
    Limit.objects.all().delete()  # what no service ever leaves
    body = problem_of(client.get(f"{TEAMS}/vision/quotas"), 500)
    assert "Traceback" not in json.dumps(body)


def test_a_writing_request_of_a_browser_needs_the_csrf_token(world):
    session = browser(world.people["admin"])
    session.handler.enforce_csrf_checks = True
    body = {"slug": "new", "name": "New"}
    refused = session.post(TEAMS, body, content_type="application/json")
    assert problem_of(refused, 403)["code"]
    assert session.get(TEAMS).status_code == 200


# Bad input ----------------------------------------------------------------------------------------

BODIES = [
    b"",
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"1",
    b"NaN",
    b"\xff\xfe",
    b"\x00",
    b'{"slug": "a\\u0000b", "name": "x"}',
    b'{"slug": "a", "name": "\\ud800"}',
    b'{"slug": "a", "name": "\\udfff\\ud800"}',
    b'{"slug": "a", "name": Infinity}',
    b'{"slug": {"a": 1}, "name": ["x"]}',
    b'{"slug": null, "name": null}',
    b'{"slug": 1e999, "name": "x"}',
    b"[" * 100_000,
    b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    b'{"slug": "%s", "name": "x"}' % (b"a" * 5000),
    b"1" * 5000,
]
WRITING = [
    ("POST", "/api/v1/teams"),
    ("PATCH", "/api/v1/teams/vision"),
    ("POST", "/api/v1/teams/vision/members"),
    ("POST", "/api/v1/teams/vision/secrets"),
    ("PUT", "/api/v1/teams/vision/quotas"),
    ("POST", "/api/v1/tokens"),
    ("PATCH", "/api/v1/me"),
    ("POST", "/api/v1/webhooks"),
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_body_that_is_none_is_refused_politely(client, body):
    for number, (method, path) in enumerate(WRITING):
        headers = {"Idempotency-Key": f"k{number}"} if number % 2 else {}
        answer = client.generic(
            method, path, body, content_type="application/json", headers=headers
        )
        assert answer.status_code < 500, path
        if answer.status_code >= 400:
            problem_of(answer, answer.status_code)


def test_a_body_above_a_mebibyte_is_413(client):
    body = b'{"name": "' + b"x" * (1 << 20) + b'"}'
    assert problem_of(raw(client, "POST", TEAMS, body), 413)["code"] == "too_large"


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/teams/%00",
        "/api/v1/teams/a%00b/secrets",
        "/api/v1/teams/vision/secrets/%00",
        "/api/v1/users?q=%00",
        "/api/v1/audit?created_after=%00",
        "/api/v1/teams?%00=1",
    ],
)
def test_a_nul_byte_in_the_address_is_a_client_s_mistake(client, path):
    for method in ("get", "put"):
        answer = getattr(client, method)(path)
        assert problem_of(answer, answer.status_code)["status"] in {400, 404, 405}


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/users?q=%ED%A0%80",
        "/api/v1/users?q=%FF",
        "/api/v1/users?q=" + "%F0%9F%92%A9" * 300,
        "/api/v1/users?is_active=perhaps",
        "/api/v1/users?site_role=root",
        "/api/v1/audit?created_after=yesterday",
        "/api/v1/audit?created_after=2026-13-40T99:99:99Z",
        "/api/v1/audit?created_after=2026-01-01T00:00:00",
        "/api/v1/audit?created_before=99999-01-01T00:00:00Z",
        "/api/v1/audit?created_after=0001-01-01T00:00:00%2B23:59",
        "/api/v1/audit?action=" + "x" * 5000,
        "/api/v1/teams/%FF",
        "/api/v1/teams/" + "a" * 5000,
        "/api/v1/teams/vision/secrets/%F0%9F%92%A9",
    ],
)
def test_a_strange_query_never_breaks(client, path):
    answer = client.get(path)
    assert answer.status_code < 500
    if answer.status_code >= 400:
        problem_of(answer, answer.status_code)


@pytest.mark.parametrize(
    "email", ["a" * 310 + "@example.o", "пример@example.org", "a b@example.org"]
)
def test_an_address_that_is_none_points_at_its_field(client, email):
    answer = client.post(f"{TEAMS}/vision/members", {"email": email, "role": "viewer"})
    errors = problem_of(answer, 400)["errors"]
    assert [e["pointer"] for e in errors] == ["/email"]


def test_slugs_collide_in_no_case_of_letters(client):
    assert client.post(TEAMS, {"slug": "robots", "name": "x"}).status_code == 201
    answer = client.post(TEAMS, {"slug": "ROBOTS", "name": "x"})
    assert problem_of(answer, 400)["errors"][0]["pointer"] == "/slug"


def test_errors_of_fields_point_into_the_body(client):
    answer = client.post("/api/v1/tokens", {"name": "", "scopes": ["read", "root"]})
    pointers = {e["pointer"] for e in problem_of(answer, 400)["errors"]}
    assert pointers == {"/name", "/scopes/1"}


# Throttles ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("throttle", "method"), [(ReadThrottle, "get"), (WriteThrottle, "patch")])
def test_who_asks_too_often_is_told_when_to_come_back(client, world, monkeypatch, throttle, method):
    monkeypatch.setattr(throttle, "THROTTLE_RATES", {"read": "2/min", "write": "2/min"})
    for _ in range(2):
        assert getattr(client, method)("/api/v1/me", {"name": "x"}).status_code == 200
    answer = getattr(client, method)("/api/v1/me", {"name": "x"})
    assert problem_of(answer, 429)["code"] == "throttled"
    assert 1 <= int(answer.headers["Retry-After"]) <= 61
    assert api_client(world.people["viewer"]).get("/api/v1/me").status_code == 200


# Tokens -------------------------------------------------------------------------------------------


def bearer(text):
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


@pytest.mark.parametrize("end", ["revoked", "expired", "deactivated", "unknown"])
def test_a_token_that_has_ended_is_401(world, end):
    user = world.people["member"]
    text = token_of(user, scopes=["write"])
    if end == "revoked":
        pk = bearer(text).get("/api/v1/me").json()["token"]["id"]
        assert bearer(text).delete(f"/api/v1/tokens/{pk}").status_code == 204
    elif end == "expired":
        ApiToken.objects.update(expires_at=clock.now())
    elif end == "deactivated":
        users.deactivate(world.actor("admin"), user_id=user.pk)
    else:
        text = "slw_nobody"
    assert problem_of(bearer(text).get("/api/v1/me"), 401)["code"] == "bad_token"


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer \xff", "Bearer a b", "Basic YTpi"])
def test_a_header_that_is_no_token(header):
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)
    problem_of(client.get("/api/v1/me"), 401)


def test_the_last_use_is_exact_to_a_minute_and_written_once_in_it(world):
    client = bearer(token_of(world.people["member"], scopes=["read"]))
    client.get("/api/v1/me")
    first = ApiToken.objects.get().last_used_at
    assert clock.now() - first < timedelta(seconds=5)
    client.get("/api/v1/me")
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(seconds=60))
    client.get("/api/v1/me")
    assert ApiToken.objects.get().last_used_at > first


def test_me_tells_who_and_by_what(world):
    user = world.people["manager"]
    me = bearer(token_of(user, scopes=["read"])).get("/api/v1/me").json()
    assert (me["email"], me["teams"]) == (user.email, {"vision": "manager"})
    assert me["token"]["scopes"] == ["read"]
    assert browser(user).get("/api/v1/me").json()["token"] is None
    bound = bearer(token_of(world.people["admin"], team=world.team)).get(TEAMS).json()
    assert [team["slug"] for team in bound["results"]] == ["vision"]


def test_quotas_show_use_beside_each_limit(client):
    wanted = {"gpus": 16, "gpus_by_type": {"H100": 8}, "gpu_hours_per_month": "2000"}
    shown = client.put(f"{TEAMS}/vision/quotas", wanted).json()
    assert (shown["gpus"], shown["used"]["gpus"]) == (16, 0)
    assert (shown["gpus_by_type"], shown["nodes"]) == ({"h100": 8}, None)
    assert shown["gpu_hours_per_month"] == "2000"
    assert client.get(f"{TEAMS}/vision/quotas").json() == shown
