"""REST of notices: shapes, scopes, secrets shown once."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from portal.notices import reconcile, services
from portal.notices.models import Route
from portal.notices.values import LevelName
from portal.teams.services.tokens import create_token

PUBLIC = "https://93.184.216.34/hook"
SECRET_HEADERS = "HTTP_AUTHORIZATION"


@pytest.fixture
def call(who):
    """Call the API as one of the actors; returns status and body."""
    clients: dict[str, APIClient] = {}

    def client(name: str) -> APIClient:
        if name not in clients:
            clients[name] = APIClient()
            actor = getattr(who, name)
            scopes = ["admin"] if name in ("admin", "auditor") else ["write"]
            text = create_token(actor, name="test", scopes=scopes).text
            clients[name].credentials(**{SECRET_HEADERS: f"Bearer {text}"})
        return clients[name]

    def call(name: str, method: str, path: str, body: Any = None, **headers: str):
        response = getattr(client(name), method)(f"/api/v1{path}", body, format="json", **headers)
        return response.status_code, response.json() if response.content else None

    return call


def test_a_webhook_from_making_to_deleting(call, who, hook):
    body = {"team": "vision", "kind": "webhook", "name": "pager", "target": hook.url}
    status, made = call("manager", "post", "/webhooks", body)
    assert status == 201
    assert made["signing_secret"].startswith("whsec_")
    assert made["team"] == "vision"
    assert hook.url not in str(made)
    path = f"/webhooks/{made['id']}"
    status, shown = call("viewer", "get", path)
    assert (status, shown["name"]) == (200, "pager")
    assert "signing_secret" not in shown
    changes = {"min_level": "bad", "quiet_from": "22:00", "quiet_until": "07:00"}
    status, changed = call("manager", "patch", path, changes)
    assert (status, changed["min_level"], changed["quiet_from"]) == (200, "bad", "22:00:00")
    status, delivery = call("manager", "post", f"{path}/test")
    assert (status, delivery["state"]) == (201, "pending")
    assert delivery["next_attempt_at"].endswith("Z")
    reconcile.deliver()
    status, page = call("viewer", "get", f"{path}/deliveries?state=delivered")
    assert [(d["id"], d["next_attempt_at"]) for d in page["results"]] == [(delivery["id"], None)]
    status, again = call("manager", "post", f"/deliveries/{delivery['id']}/replay")
    assert (status, again["state"]) == (200, "pending")
    reconcile.deliver()
    assert len(hook.got) == 2
    assert call("manager", "delete", path) == (204, None)
    assert call("manager", "get", path)[0] == 404


def test_the_levels_of_the_own_teams(call, who):
    services.set_level("budget:1", LevelName.WARN, {"message": "80 %"}, team=who.team)
    services.set_level("budget:2", LevelName.BAD, {"message": "100 %"}, team=who.other)
    services.set_level("worker", LevelName.INFO, {}, team=None)
    status, page = call("viewer", "get", "/notices")
    assert status == 200
    assert [(n["matter"], n["level"], n["team"]) for n in page["results"]] == [
        ("budget:1", "warn", "vision")
    ]
    assert len(call("admin", "get", "/notices")[1]["results"]) == 3
    _, page = call("admin", "get", "/notices?team=speech&level=bad&limit=1")
    assert [n["matter"] for n in page["results"]] == ["budget:2"]
    status, problem = call("admin", "get", "/notices?level=awful")
    assert (status, problem["errors"][0]["pointer"]) == (400, "/level")


@pytest.mark.parametrize(
    ("name", "status"), [("viewer", 403), ("member", 403), ("auditor", 403), ("stranger", 404)]
)
def test_who_may_not(call, who, name, status):
    route = services.create_route(
        who.manager, team=who.team, kind="webhook", name="pager", target=PUBLIC
    ).row
    delivery = services.test_route(who.manager, route)
    body = {"team": "vision", "kind": "mail", "name": "x", "target": "x@example.org"}
    for method, path, sent in (
        ("post", "/webhooks", body),
        ("patch", f"/webhooks/{route.pk}", {"name": "y"}),
        ("delete", f"/webhooks/{route.pk}", None),
        ("post", f"/webhooks/{route.pk}/test", None),
        ("post", f"/deliveries/{delivery.pk}/replay", None),
    ):
        assert call(name, method, path, sent)[0] == status, path
    assert call(name, "get", "/webhooks")[1]["results"] == [] or name != "stranger"
    assert Route.objects.get().name == "pager"


def test_a_metadata_address_is_refused_with_its_reason(call):
    body = {"team": "vision", "kind": "webhook", "name": "x", "target": "http://169.254.169.254/"}
    status, problem = call("manager", "post", "/webhooks", body)
    assert (status, problem["code"]) == (422, "address_refused")
    assert problem["errors"][0]["pointer"] == "/target"
    assert "metadata" in problem["errors"][0]["message"]


def test_the_same_key_makes_one_route_and_keeps_no_secret(call):
    body = {"team": "vision", "kind": "webhook", "name": "x", "target": PUBLIC}
    first = call("manager", "post", "/webhooks", body, HTTP_IDEMPOTENCY_KEY="k1")
    second = call("manager", "post", "/webhooks", body, HTTP_IDEMPOTENCY_KEY="k1")
    assert first[0] == second[0] == 201
    assert first[1]["id"] == second[1]["id"]
    assert "signing_secret" not in second[1]
    assert Route.objects.count() == 1


def test_routes_of_the_site_are_the_admins(call):
    body = {"kind": "mail", "name": "site", "target": "ops@example.org"}
    assert call("manager", "post", "/webhooks", body)[0] == 403
    status, made = call("admin", "post", "/webhooks", body)
    assert (status, made["team"]) == (201, None)
    assert call("manager", "get", f"/webhooks/{made['id']}")[0] == 404
    assert call("auditor", "get", f"/webhooks/{made['id']}")[0] == 200


@pytest.mark.parametrize("rows", [2, 20])
def test_a_page_takes_the_same_number_of_queries(call, who, rows, django_assert_max_num_queries):
    for number in range(rows):
        services.create_route(
            who.manager, team=who.team, kind="webhook", name=f"r{number}", target=PUBLIC
        )
        services.set_level(f"budget:{number}", LevelName.WARN, {}, team=who.team)
    call("viewer", "get", "/me")
    with django_assert_max_num_queries(8):
        assert len(call("viewer", "get", "/notices")[1]["results"]) == rows
    with django_assert_max_num_queries(8):
        assert len(call("viewer", "get", "/webhooks")[1]["results"]) == rows
