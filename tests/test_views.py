"""The command palette: what it finds for whom, and where it leads."""

import pytest

from portal.teams.models import User
from tests.jobs.makers import make_job
from tests.people import World, browser, make_user, make_world

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> World:
    return make_world()


def found(user: User | None, text: str) -> dict[str, str]:
    """What the palette finds: detail → address."""
    answer = browser(user).get("/palette", {"q": text})
    return {row["detail"]: row["href"] for row in answer.json()["results"]}


def test_a_member_finds_people_of_the_own_teams_there(world) -> None:
    everybody = found(world.people["member"], "example.org")
    assert everybody.keys() == {f"{n}@example.org" for n in ("viewer", "member", "manager")}
    assert set(everybody.values()) == {"/teams/vision"}
    assert found(world.people["other"], "viewer") == {}


def test_an_admin_finds_everybody_by_an_address_that_is_escaped(world) -> None:
    user = make_user("grace+gpu")
    admin = world.people["admin"]
    assert found(admin, "grace") == {user.email: "/admin/users?q=grace%2Bgpu%40example.org"}
    page = browser(admin).get(found(admin, "grace")[user.email]).content.decode()
    assert user.email in page


def test_teams_are_found_by_name_and_slug_by_those_who_see_them(world) -> None:
    assert found(world.people["viewer"], "visi") == {"vision": "/teams/vision"}
    assert found(world.people["other"], "visi") == {}
    assert found(world.people["viewer"], "v") == {}


def test_jobs_and_definitions_are_found_by_those_who_see_them(world) -> None:
    job, _ = make_job(world, name="night shift")
    href = f"/jobs/{job.pk}"
    assert href in found(world.people["viewer"], "night").values()
    assert href in found(world.people["viewer"], job.pk).values()
    assert found(world.people["other"], "night") == {}
    definition = job.version.definition
    page = found(world.people["viewer"], definition.slug)[definition.slug]
    assert page == f"/definitions/{definition.pk}"
