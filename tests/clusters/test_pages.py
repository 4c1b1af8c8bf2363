"""Clusters by page and REST: what people see, and who decides who may launch."""

import pytest
from django.core.cache import cache

from clusters import services
from clusters.models import Cluster
from portal.teams.models import AuditEvent
from tests.people import World, api_client, browser, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(settings, tmp_path) -> World:
    settings.LOCAL_JOBS_FOLDER = tmp_path / "jobs"
    settings.HAS_WALL = False
    services.ensure_local()
    return make_world()


def test_an_admin_assigns_the_machine_to_a_team(world) -> None:
    member, admin = browser(world.people["member"]), browser(world.people["admin"])
    assert "No cluster for your teams" in member.get("/clusters").content.decode()
    assert member.get("/clusters/local").status_code == 404
    page = admin.get("/clusters/local").content.decode()
    assert "run as the user of the portal" in page
    form = {"name": "This machine", "teams": [world.team.slug]}
    assert admin.post("/clusters/local", form).status_code == 302
    assert "This machine" in member.get("/clusters").content.decode()
    seen = member.get("/clusters/local").content.decode()
    assert world.team.name in seen
    assert "Save" not in seen
    assert member.post("/clusters/local", form).status_code == 403
    assert AuditEvent.objects.filter(action="cluster.changed").count() == 1


def test_rest_lists_changes_and_asks(world) -> None:
    admin, other = api_client(world.people["admin"]), api_client(world.people["other"])
    path = "/api/v1/clusters"
    assert other.get(path).json()["results"] == []
    changed = admin.patch(f"{path}/local", {"teams": ["vision", "speech"]})
    assert changed.json()["teams"] == ["speech", "vision"]
    assert other.get(f"{path}/local").json()["teams"] == ["speech"]
    assert admin.patch(f"{path}/local", {"teams": ["nobodys"]}).status_code == 400
    node = other.get(f"{path}/local/nodes").json()[0]
    assert (node["state"], node["cpus_allocated"]) == ("ready", 0)


def test_a_machine_that_cannot_be_asked_says_so(world, settings, tmp_path) -> None:
    settings.LOCAL_JOBS_FOLDER = tmp_path / "file"
    (tmp_path / "file").write_text("")
    page = browser(world.people["admin"]).get("/clusters/local")
    assert page.status_code == 200
    assert "does not answer" in page.content.decode()
    assert Cluster.objects.get().name == "This machine"


def test_a_check_says_what_holds_and_how_to_mend_the_rest(world, settings, tmp_path) -> None:
    """Over 300 ms: starts real interpreters, and asks an address where nobody listens."""
    settings.LOOPBACK_URL = "http://127.0.0.1:9"
    admin = api_client(world.people["admin"])
    found = admin.post("/api/v1/clusters/local/check").json()
    steps = {step["title"]: step for step in found["steps"]}
    assert steps["The folder of jobs can be written"]["is_ok"]
    assert "can read what this portal can" in steps["As whom jobs run"]["message"]
    assert "as root" in steps["As whom jobs run"]["remedy"]
    assert "version 3." in steps["python3 is there"]["message"]
    assert steps["A job's runner can start"]["is_ok"]
    assert "refused" in steps["Its agent reaches the portal"]["message"]
    assert not found["is_ok"]
    assert admin.post("/api/v1/clusters/local/check").status_code == 409
    cache.clear()
    settings.LOCAL_JOBS_FOLDER = tmp_path / "file"
    (tmp_path / "file").write_text("")
    page = browser(world.people["admin"]).post("/clusters/local/check").content.decode()
    assert "The folder of jobs can be written: no" in page
    assert "free space there" in page
