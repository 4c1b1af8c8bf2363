"""Definitions: versions that never change, who may save them, and REST."""

from threading import Thread

import pytest
import yaml
from django.core.exceptions import ValidationError
from django.db import connections
from hypothesis import given
from hypothesis import strategies as st

from jobs.forms import YamlField, as_yaml, plain
from jobs.models import DefinitionVersion, JobDefinition
from jobs.services import definitions
from portal.core.errors import Conflict, Invalid, NotAllowed
from tests.people import World, api_client, browser, make_world

pytestmark = pytest.mark.django_db
SPEC = {"regime": "smoke", "time_limit_seconds": 60, "command": ["true"]}
OTHER = {**SPEC, "time_limit_seconds": 90}
PATH = "/api/v1/job-definitions"


@pytest.fixture
def world(transactional_db) -> World:
    return make_world()


@pytest.fixture
def made(world: World) -> JobDefinition:
    return definitions.create_definition(
        world.actor("manager"), world.team, slug="train", name="Train", spec=SPEC
    )


def test_each_save_is_a_version_and_none_changes(world, made) -> None:
    manager = world.actor("manager")
    made = definitions.save_version(manager, made, spec=OTHER)
    made = definitions.save_version(manager, made, spec=OTHER, name="Training")
    rows = DefinitionVersion.objects.order_by("number").values_list("number", "spec")
    assert list(rows) == [(1, SPEC), (2, OTHER)]
    assert (made.latest, made.name) == (2, "Training")


def test_what_is_written_first_stays_first(world, made) -> None:
    spec = {**SPEC, "parameters": {"zeta": {}, "a": {}, "middle": {}}, "env": {"B": "1", "AA": "2"}}
    definitions.save_version(world.actor("manager"), made, spec=spec)
    stored = DefinitionVersion.objects.get(number=2).spec
    assert list(stored) == list(spec)
    assert list(stored["parameters"]) == ["zeta", "a", "middle"]


def test_of_two_savers_one_has_not_seen_the_other(world, made) -> None:
    outcomes: list[object] = []
    stale = [JobDefinition.objects.get(pk=made.pk) for _ in range(2)]

    def save(row: JobDefinition, seconds: int) -> None:
        try:
            spec = {**SPEC, "time_limit_seconds": seconds}
            definitions.save_version(world.actor("manager"), row, spec=spec)
            outcomes.append("saved")
        except Conflict as error:
            outcomes.append(error.code)
        finally:
            connections.close_all()

    threads = [Thread(target=save, args=(row, 100 + n)) for n, row in enumerate(stale)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == ["newer_version", "saved"]
    assert DefinitionVersion.objects.count() == 2


def test_every_fault_has_a_pointer_and_nothing_is_saved(world) -> None:
    with pytest.raises(Invalid) as caught:
        definitions.create_definition(
            world.actor("manager"), world.team, slug="x", name="X", spec={**SPEC, "regime": "fun"}
        )
    assert [fault.pointer for fault in caught.value.errors] == ["/spec/regime"]
    assert not JobDefinition.objects.exists()


def test_members_use_and_managers_change(world, made) -> None:
    for persona in ("viewer", "member", "auditor"):
        with pytest.raises(NotAllowed):
            definitions.save_version(world.actor(persona), made, spec=OTHER)
    built_in = JobDefinition.objects.create(slug="smoke", name="Smoke")
    with pytest.raises(NotAllowed, match="Copy it"):
        definitions.delete_definition(world.actor("admin"), built_in)


def test_a_deleted_definition_frees_its_slug_and_keeps_its_versions(world, made) -> None:
    manager = world.actor("manager")
    definitions.delete_definition(manager, made)
    definitions.create_definition(manager, world.team, slug="train", name="Train", spec=OTHER)
    assert DefinitionVersion.objects.filter(definition=made).count() == 1


def test_rest_walks_a_definition_through_its_life(world) -> None:
    manager, member = (api_client(world.people[p]) for p in ("manager", "member"))
    body = {"team": world.team.slug, "slug": "train", "name": "Train", "spec": SPEC}
    made = manager.post(PATH, body)
    assert made.status_code == 201, made.json()
    path = f"{PATH}/{made.json()['id']}"
    assert member.get(path).json()["spec"] == SPEC
    assert manager.put(path, {"spec": OTHER}).json()["version"] == 2
    versions = member.get(f"{path}/versions").json()["results"]
    assert [row["version"] for row in versions] == [2, 1]
    assert member.put(path, {"spec": SPEC}).status_code == 403
    assert manager.post(PATH, body).status_code == 409
    assert manager.delete(path).status_code == 204
    assert member.get(path).status_code == 404


def test_built_in_definitions_are_everybodys(world) -> None:
    built_in = JobDefinition.objects.create(slug="smoke", name="Smoke")
    DefinitionVersion.objects.create(definition=built_in, number=1, spec=SPEC)
    for persona in ("viewer", "other", "auditor"):
        rows = api_client(world.people[persona]).get(PATH).json()["results"]
        assert [(row["slug"], row["team"]) for row in rows] == [("smoke", None)]


@pytest.mark.parametrize("count", [2, 20])
def test_the_list_asks_a_constant_number_of_queries(
    world, count, django_assert_num_queries
) -> None:
    for number in range(count):
        definitions.create_definition(
            world.actor("manager"), world.team, slug=f"d{number}", name="D", spec=SPEC
        )
    client = api_client(world.people["member"])
    client.get(PATH)
    with django_assert_num_queries(3):
        assert len(client.get(PATH).json()["results"]) == count


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a: [", "Line 1"),
        ("a: 2026-11-30", "put quotes around it"),
        ("1: x", "every name must be text"),
        ("a: !!binary aGk=", "put quotes around it"),
        ("a: &x [*x]", "aliases"),
    ],
)
def test_yaml_that_json_cannot_hold_is_refused_with_the_remedy(text, word) -> None:
    with pytest.raises(ValidationError, match=word):
        YamlField().clean(text)


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(
    st.recursive(
        TEXTS | st.integers() | st.booleans(),
        lambda x: st.lists(x) | st.dictionaries(TEXTS, x),
    )
)
def test_a_definition_survives_yaml_unchanged(value) -> None:
    assert plain(yaml.safe_load(as_yaml(value))) == value


def test_the_editor_saves_checks_and_loses_nothing(world) -> None:
    manager = browser(world.people["manager"])
    form = {"team": "vision", "name": "Train", "slug": "train", "spec": "regime: fun\ncommand: [x]"}
    refused = manager.post("/definitions/new", form)
    assert refused.status_code == 422
    assert "regime: fun" in refused.content.decode()
    checked = manager.post("/definitions/check", {"spec": form["spec"]}).content.decode()
    assert "/regime" in checked
    assert "/time_limit_seconds" in checked
    form["spec"] = "regime: smoke\ntime_limit_seconds: 60\ncommand: [x]"
    assert manager.post("/definitions/new", form).status_code == 302
    row = JobDefinition.objects.get()
    text = manager.get(f"/definitions/{row.pk}/export").content.decode()
    assert yaml.safe_load(text) == {"regime": "smoke", "time_limit_seconds": 60, "command": ["x"]}
