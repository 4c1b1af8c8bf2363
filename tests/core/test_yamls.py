"""YAML that people write: whatever is wrong with it is one kind of error."""

import pytest
import yaml

from portal.core import yamls


@pytest.mark.parametrize(
    "text",
    [
        "[" * 3000,
        "a: 2024-13-45",
        "a: " + "1" * 5000,
        "a: !!timestamp x",
        "a: !!int x",
        "a: !!int ''",
        "a: !!float ''",
        "a: !!bool perhaps",
        "a: &x [1]\nb: *x",
        "a: [",
        "!!python/object:os.system {}",
    ],
)
def test_what_cannot_be_read_is_one_kind_of_error(text) -> None:
    with pytest.raises(yaml.YAMLError):
        yamls.load(text)


def test_only_true_and_false_are_truth_values() -> None:
    assert yamls.load("on: [no, y, true]") == {"on": ["no", "y", True]}
