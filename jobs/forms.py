"""Forms of jobs; a definition is typed as YAML."""

from typing import Any

import yaml
from django import forms

from portal.teams.models import Team

START = """\
regime: smoke
description: Says hello
script: |
  echo "hello {{ name }}"
parameters:
  name: {type: string, default: world, maxLength: 100}
time_limit_seconds: 60
resources: {nodes: 1, cpus_per_node: 1}
"""


class YamlField(forms.CharField):
    """YAML text that becomes JSON; a mistake is said with its line."""

    widget = forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "autocomplete": "off"})

    def clean(self, value: Any) -> Any:
        """Parse the text; only what JSON can hold comes through."""
        text = super().clean(value)
        try:
            return plain(yaml.safe_load(text))
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f"Line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
            raise forms.ValidationError(f"{where}{error.problem}.") from error
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is not YAML: {error}"[:300]) from error


def plain(value: Any) -> Any:
    """Return YAML's value as JSON has it; raise `ValueError` for dates, binary and odd keys."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [plain(part) for part in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {key: plain(part) for key, part in value.items()}
        case dict():
            raise ValueError("every name must be text; put quotes around it")
    raise ValueError(f"{value!r} is not text, a number, true or false; put quotes around it")


def as_yaml(spec: Any) -> str:
    """Return a definition as YAML, in the order in which it was written."""

    class Dumper(yaml.SafeDumper):
        pass

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        is_plain = all(letter.isprintable() or letter == "\n" for letter in value)
        style = ("|" if "\n" in value else None) if is_plain else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return yaml.dump(spec, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)


class DefinitionForm(forms.Form):
    """A new definition."""

    team = forms.ChoiceField()
    name = forms.CharField(max_length=250, help_text="As people say it.")
    slug = forms.CharField(
        max_length=40, label="Short name", help_text="For the command line. It stays."
    )
    spec = YamlField(label="Definition", initial=START)

    def __init__(self, *args: Any, teams: list[Team], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["team"].choices = [(t.slug, t.name) for t in teams]  # type: ignore[attr-defined] # a ChoiceField


class VersionForm(forms.Form):
    """A new version of a definition."""

    name = forms.CharField(max_length=250)
    spec = YamlField(label="Definition")
