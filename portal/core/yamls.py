"""Reading YAML as people mean it: only true and false are truth values, as in YAML 1.2.

By YAML 1.1, which PyYAML speaks, the keys `on`, `no` and `y` would be truth values too.
"""

import re
from typing import Any

import yaml


class Loader(yaml.SafeLoader):
    """Reads no aliases, since a few lines of them become gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        """Refuse aliases; everything else as PyYAML does."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call] # its stubs
            raise yaml.MarkedYAMLError(None, None, "aliases (*) are not read; write it out", mark)
        return super().compose_node(parent, index)


_BOOL = "tag:yaml.org,2002:bool"
Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in pairs if tag != _BOOL]
    for letter, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(_BOOL, re.compile(r"\A(?:true|True|TRUE|false|False|FALSE)\Z"), "tTfF")


def load(text: str) -> Any:
    """Return the value of one document. Raises `yaml.YAMLError` for whatever is wrong with it."""
    try:
        return yaml.load(text, Loader=Loader)  # noqa: S506 - a SafeLoader
    except (ValueError, LookupError, AttributeError, RecursionError) as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error
