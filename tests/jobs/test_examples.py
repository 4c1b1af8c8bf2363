"""The documented examples are definitions that the portal takes, one for each regime."""

from pathlib import Path

import pytest

from jobs import spec as specs
from jobs.services.jobs import script_of
from portal.core import yamls

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "examples"
FILES = sorted(FOLDER.glob("*.yaml"))
GIVEN = {"model": "$(id)", "data": "'; rm -rf /", "prompts": "a b"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_is_valid_and_renders(path) -> None:
    raw = yamls.load(path.read_text())
    assert specs.check(raw["spec"]) == []
    spec = specs.parse(raw["spec"])
    given = {name: value for name, value in GIVEN.items() if name in spec.parameters}
    values, faults = specs.bind(spec, given)
    assert faults == []
    script = script_of(spec, values)
    assert not any(value in script for value in given.values())
    assert path.name in path.read_text().splitlines()[2]


def test_there_is_one_for_each_regime_of_the_three() -> None:
    regimes = {yamls.load(path.read_text())["spec"]["regime"] for path in FILES}
    assert regimes == {"pretraining", "post_training", "inference"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on: [lost]", {"on": ["lost"]}),
        ("no: y", {"no": "y"}),
        ("a: true", {"a": True}),
        ("a: False", {"a": False}),
        ("a: 'true'", {"a": "true"}),
    ],
)
def test_only_true_and_false_are_truth_values(text, value) -> None:
    assert yamls.load(text) == value
