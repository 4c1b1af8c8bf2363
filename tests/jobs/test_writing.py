"""What helps who writes definitions and commands: the reference, comparisons, commands."""

import json
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs import commands, diffs, spec
from jobs.forms import YamlField
from jobs.reference import KEYS

BODY = {
    "definition": "train",
    "version": 3,
    "team": "vision",
    "cluster": "local",
    "name": 'it\'s $HOME "quoted" 🦙',
    "parameters": {"lr": 3e-05, "n": 4, "text": "12", "on": False, "list": ["a b", "`id`"]},
    "resources": {"gpus_per_node": 8},
    "tags": {"paper": "1e3"},
    "time_limit_seconds": 60,
}


def _keys(properties: dict[str, Any]) -> set[str]:
    nested = {"resources", "checkpoint", "retry"}
    return {*properties} | {
        f"{name}.{part}" for name in nested for part in properties[name]["properties"]
    }


def test_the_reference_names_every_key_and_no_other() -> None:
    assert {key.name for key in KEYS} == _keys(spec.SCHEMA["properties"])


@pytest.mark.parametrize("key", [key for key in KEYS if key.example], ids=lambda key: key.name)
def test_every_example_is_taken(key) -> None:
    raw: Any = YamlField().clean(key.example)
    for name in reversed(key.name.split(".")[:-1]):
        raw = {name: raw}
    whole = {"regime": "smoke", "time_limit_seconds": 1, **raw}
    whole |= {} if "script" in raw or "command" in raw else {"command": ["true"]}
    names = ("lr",) if "{{ lr }}" in key.example else ()
    whole.setdefault("parameters", {name: {"type": "number"} for name in names})
    assert spec.check(whole) == []


def test_the_clients_command_says_what_the_body_says() -> None:
    words = shlex.split(commands.as_cli(BODY))
    assert words[:4] == ["./slipway", "jobs", "run", "train"]
    given: dict[str, dict[str, Any]] = {"-p": {}, "-r": {}, "--tag": {}}
    plain = {}
    for option, value in zip(words[4::2], words[5::2], strict=True):
        if option in given:
            name, _, text = value.partition("=")
            try:
                given[option][name] = json.loads(text)
            except ValueError:
                given[option][name] = text
        else:
            plain[option] = value
    assert given["-p"] == BODY["parameters"]
    assert given["-r"] == BODY["resources"]
    assert given["--tag"] == BODY["tags"]
    assert plain["--name"] == BODY["name"]
    assert plain["--time-limit"] == "60"


def test_curl_sends_the_body_with_a_token_of_the_environment() -> None:
    words = shlex.split(commands.as_curl(BODY, url="https://x"))
    assert json.loads(words[words.index("--data-raw") + 1]) == BODY
    assert "https://x/api/v1/jobs" in words
    assert "Authorization: Bearer $SLIPWAY_TOKEN" in words


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abc")))
def test_a_comparison_leads_from_one_text_to_the_other(old, new) -> None:
    lines = diffs.compare("\n".join(old), "\n".join(new))
    before, after = dict(enumerate(old, 1)), dict(enumerate(new, 1))
    for line in lines:
        if line.was is not None:
            assert before.pop(line.was) == line.text
        if line.now is not None:
            assert after.pop(line.now) == line.text
    assert list(before.values()) == list(after.values())
