"""What a definition may say, and what parameters become."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import spec as specs

LEAST = {"regime": "smoke", "time_limit_seconds": 60, "command": ["true"]}
TRAIN = {
    "regime": "pretraining",
    "time_limit_seconds": 3600,
    "script": "torchrun train.py --lr {{ lr }} --name '{{ name }}'\n",
    "parameters": {
        "lr": {"type": "number", "minimum": 0, "default": 0.1},
        "name": {"type": "string", "maxLength": 20},
        "tags": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
        "fast": {"type": "boolean", "default": True},
    },
    "checkpoint": {"path": "/ckpt", "signal": "USR1", "grace_seconds": 120},
    "retry": {"max_attempts": 3, "on": ["preempted"]},
}


@pytest.mark.parametrize(
    ("change", "pointer", "word"),
    [
        ({"time_limit_seconds": 0}, "/time_limit_seconds", "minimum"),
        ({"time_limit_seconds": 10**9}, "/time_limit_seconds", "maximum"),
        ({"time_limit_seconds": "60"}, "/time_limit_seconds", "integer"),
        ({"regime": "fun"}, "/regime", "one of"),
        ({"colour": "red"}, "/colour", "no such field"),
        ({"script": "echo"}, "/command", "one of the two"),
        ({"command": []}, "/command", "non-empty"),
        ({"command": ["echo", "{{ x }}"]}, "/command/1", "no parameter x"),
        ({"env": {"A B": "1"}}, "/env", "does not match"),
        ({"env": {"SLIPWAY_JOB_ID": "1"}}, "/env/SLIPWAY_JOB_ID", "portal's own"),
        ({"env": {"A": "1"}, "secrets": {"A": "s"}}, "/secrets/A", "keep one"),
        ({"parameters": {"x": {"type": "strin"}}}, "/parameters/x", "not a JSON Schema"),
        (
            {"parameters": {"x": {"type": "integer", "default": "a"}}},
            "/parameters/x/default",
            "fit",
        ),
        ({"parameters": {"x": {}, "X": {}}}, "/parameters/X", "only by case"),
        ({"parameters": {"x": {"$ref": "http://a/"}}}, "/parameters/x", "not read"),
        ({"resources": {"gpus": 1}}, "/resources/gpus", "no such field"),
        ({"retry": {"on": ["completed"]}}, "/retry/on/0", "one of"),
    ],
)
def test_every_fault_has_its_place(change, pointer, word) -> None:
    faults = specs.check({**LEAST, **change})
    assert [fault.pointer for fault in faults] == [pointer]
    assert word in faults[0].message


def test_a_missing_field_is_named() -> None:
    assert [f.pointer for f in specs.check({"command": ["true"]})] == [
        "/regime",
        "/time_limit_seconds",
    ]


def test_a_script_with_a_parameter_in_a_comment_is_refused_by_line() -> None:
    faults = specs.check({**TRAIN, "script": "true\n# {{ lr }}\n"})
    assert faults[0].pointer == "/script"
    assert faults[0].message.startswith("Line 2:")


def test_a_definition_becomes_a_value() -> None:
    assert specs.check(TRAIN) == []
    spec = specs.parse(TRAIN)
    assert spec.launch is specs.Launch.ONCE
    assert (spec.checkpoint.signal, spec.checkpoint.grace_seconds) == ("USR1", 120)
    assert (spec.max_attempts, spec.retry_on) == (3, {"preempted"})
    assert specs.parse(LEAST).launch is specs.Launch.PER_NODE


def test_parameters_are_checked_and_filled_in() -> None:
    spec = specs.parse(TRAIN)
    values, faults = specs.bind(spec, {"name": "run"})
    assert faults == []
    assert specs.environment_of(values) == {
        "SLIPWAY_PARAM_LR": "0.1",
        "SLIPWAY_PARAM_NAME": "run",
        "SLIPWAY_PARAM_TAGS": "a\nb",
        "SLIPWAY_PARAM_FAST": "true",
    }
    _values, faults = specs.bind(spec, {"lr": "fast", "nmae": "x"})
    assert {fault.pointer for fault in faults} == {
        "/parameters/lr",
        "/parameters/nmae",
        "/parameters/name",
    }


@given(st.text(st.characters(exclude_characters="\0")))
def test_a_value_fills_its_argument_whole_and_is_not_read_again(value) -> None:
    spec = specs.parse({**LEAST, "command": ["echo", "--x={{ x }}"], "parameters": {"x": {}}})
    assert specs.argv_of(spec, {"x": value}) == ("echo", f"--x={value}")
