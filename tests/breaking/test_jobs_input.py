"""Definitions and jobs that no honest person writes: each gets a sentence, and soon."""

import json
import time
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from clusters import services as clusters
from jobs import forms
from jobs import spec as specs
from jobs.services import definitions
from tests.people import World, api_client, make_world

LEAST = {"regime": "smoke", "time_limit_seconds": 60, "command": ["true"]}
JOBS, DEFINITIONS = "/api/v1/jobs", "/api/v1/job-definitions"


@pytest.fixture
def world(db: Any) -> World:
    world = make_world()
    clusters.ensure_local().teams.add(world.team)
    spec = {**LEAST, "parameters": {"x": {"default": 1}}}
    definitions.create_definition(
        world.actor("manager"), world.team, slug="train", name="Train", spec=spec
    )
    return world


def a_job(world: World, **changes: Any) -> str:
    wanted = {"team": world.team.slug, "cluster": "local", "definition": "train"}
    return json.dumps({**wanted, **changes})


def a_definition(world: World, **changes: Any) -> str:
    wanted = {"team": world.team.slug, "slug": "new", "name": "New"}
    return json.dumps({**wanted, "spec": {**LEAST, **changes}})


def posted(world: World, path: str, text: str) -> Any:
    client = api_client(world.people["manager"])
    return client.generic("POST", path, text, content_type="application/json")


NASTY = {
    "NUL": '"a\\u0000b"',
    "half a pair": '"\\ud800"',
    "infinity": "1e999",
    "depth": "[" * 5000 + "]" * 5000,
    "less depth": "[" * 900 + "]" * 900,
    "digits": "9" * 4000,
    "NUL as a name": '{"a\\u0000b": 1}',
}


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
@pytest.mark.parametrize("field", ["parameters", "tags", "placement", "name", "definition"])
def test_what_no_column_can_hold_is_a_wrong_field_of_a_job(
    world: World, field: str, text: str
) -> None:
    value: Any = "@@" if field in ("name", "definition") else {"x": "@@"}
    answer = posted(world, JOBS, a_job(world, **{field: value}).replace('"@@"', text))
    assert answer.status_code in (201, 400, 404, 422), answer.content[:300]
    if text in (NASTY["NUL"], NASTY["half a pair"], NASTY["infinity"]):
        assert answer.status_code in (400, 404), answer.content[:300]


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
@pytest.mark.parametrize("field", ["env", "parameters", "tags", "description"])
def test_what_no_column_can_hold_is_a_wrong_field_of_a_definition(
    world: World, field: str, text: str
) -> None:
    value: Any = {"x": "@@"}
    if field == "parameters":
        value = {"x": {"default": "@@"}}
    elif field == "description":
        value = "@@"
    answer = posted(world, DEFINITIONS, a_definition(world, **{field: value}).replace('"@@"', text))
    assert answer.status_code in (201, 400), answer.content[:300]
    if text in (NASTY["NUL"], NASTY["half a pair"], NASTY["infinity"]):
        assert answer.status_code == 400, answer.content[:300]


@pytest.mark.parametrize("name", ["gpus_per_node", "cpus_per_node", "nodes"])
def test_a_count_with_a_point_is_no_count(world: World, name: str) -> None:
    answer = posted(world, JOBS, a_job(world, resources={name: 1.0}))
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == f"/resources/{name}"
    answer = posted(world, DEFINITIONS, a_definition(world, resources={name: 1.0}))
    assert answer.json()["errors"][0]["pointer"] == f"/spec/resources/{name}"


@pytest.mark.parametrize("word", ["$ref", "$dynamicRef"])
def test_a_schema_that_refers_to_itself_is_refused(word: str) -> None:
    schema = {word: "#", "default": 1}
    assert specs.check({**LEAST, "parameters": {"x": schema}})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(a+)+$"},
        {"type": "string", "pattern": "^(a|a)*$"},
        {"type": "string", "pattern": "(.*)*x"},
        {"type": "string", "pattern": "^" + "a*" * 20 + "b$"},
        {"type": "string", "pattern": "^" + "a?" * 40 + "a" * 40 + "$"},
        {"type": "array", "items": {"type": "string", "pattern": "^([a-z]+)*$"}},
        {"type": "object", "patternProperties": {"^(a+)+$": {}}},
        {"type": "object", "propertyNames": {"pattern": "^(a+)+$"}},
    ],
)
def test_a_pattern_that_could_take_for_ever_is_refused(schema: dict[str, Any]) -> None:
    faults = specs.check({**LEAST, "parameters": {"x": schema}})
    assert [fault.pointer for fault in faults] == ["/parameters/x"]
    assert "pattern" in faults[0].message


@pytest.mark.parametrize(
    "pattern",
    [r"^s3://[a-z0-9.-]+/.+$", "^[a-z]{1,20}$", r"^\d+(\.\d+)?$", "^(adam|sgd)$", "^v[0-9]{1,3}$"],
)
def test_patterns_that_people_write_are_kept_and_quick(pattern: str) -> None:
    raw = {**LEAST, "parameters": {"x": {"type": "string", "pattern": pattern}}}
    assert specs.check(raw) == []
    began = time.perf_counter()
    _values, faults = specs.bind(specs.parse(raw), {"x": "a" * 100_000 + "\n"})
    assert faults
    assert time.perf_counter() - began < 2


def test_a_definition_of_faults_answers_with_some_of_them() -> None:
    raw = {**LEAST, "tags": {f"{n}": n for n in range(50_000)}}
    assert 0 < len(specs.check(raw)) <= 100
    script = "echo {{ y }}\n" * 15_000
    raw = {"regime": "smoke", "time_limit_seconds": 60, "script": script}
    assert 0 < len(specs.check(raw)) <= 100


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [LAUGHS, "a: &a [*a]", "x: .inf", "x: .nan", f"x: 0x{'f' * 6000}", "[" * 3000, 'x: "\\0"'],
    ids=["laughs", "itself", "infinity", "no number", "digits", "depth", "NUL"],
)
def test_yaml_that_json_cannot_hold_is_said_at_once(text: str) -> None:
    began = time.perf_counter()
    with pytest.raises(ValidationError):
        forms.YamlField().clean(text)
    assert time.perf_counter() - began < 2


@pytest.mark.parametrize(
    ("command", "size", "pointer"),
    [
        (["echo", "{{ x }}"], 140_000, "/parameters/x"),
        (["echo", "{{ x }}{{ x }}"], 70_000, "/parameters"),
        (["echo", *["{{ x }}"] * 20], 70_000, "/parameters"),
    ],
)
def test_values_with_which_no_program_can_start_are_refused(
    world: World, command: list[str], size: int, pointer: str
) -> None:
    schema = {"x": {"type": "string"}}
    made = posted(world, DEFINITIONS, a_definition(world, command=command, parameters=schema))
    assert made.status_code == 201, made.content[:300]
    job = a_job(world, definition="new", parameters={"x": "y" * size})
    answer = posted(world, JOBS, job)
    assert answer.status_code == 400, answer.content[:300]
    assert {error["pointer"] for error in answer.json()["errors"]} >= {pointer}
    small = a_job(world, definition="new", parameters={"x": "y" * 1000})
    assert posted(world, JOBS, small).status_code == 201


@pytest.mark.parametrize("name", ["\x1b]0;title\x07", "\u200b\u200b", "\u202e"])
def test_a_name_that_would_command_a_terminal_or_show_nothing_is_refused_of_a_job(
    world: World, name: str
) -> None:
    answer = posted(world, JOBS, a_job(world, name=name))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/name")
    job = posted(world, JOBS, a_job(world, name="  Łódź \n 試験 😀 ")).json()
    assert job["name"] == "Łódź 試験 😀"
    client = api_client(world.people["manager"])
    changed = client.patch(f"{JOBS}/{job['id']}", {"name": name}, format="json")
    assert changed.status_code == 400
