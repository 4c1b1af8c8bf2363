"""Forms of jobs; a definition is typed as YAML."""

import math
from typing import Any

import yaml
from django import forms

from jobs.spec import Spec
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


LONGEST_YAML = 300_000
LONGEST_NUMBER_BITS = 4096


class _Loader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them can stand for gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call] # its stubs
            raise yaml.MarkedYAMLError(None, None, "aliases (*) are not read; write it out", mark)
        return super().compose_node(parent, index)


class YamlField(forms.CharField):
    """YAML text that becomes JSON; a mistake is said with its line."""

    widget = forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "autocomplete": "off"})

    def clean(self, value: Any) -> Any:
        """Parse the text; only what JSON can hold comes through."""
        text = super().clean(value)
        if len(text) > LONGEST_YAML:
            raise forms.ValidationError(f"It is longer than {LONGEST_YAML:,} characters.")
        try:
            return plain(yaml.load(text, Loader=_Loader))  # noqa: S506 - a SafeLoader
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f"Line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
            raise forms.ValidationError(f"{where}{error.problem}.") from error
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise forms.ValidationError(f"This is not YAML: {error}"[:300]) from error


def plain(value: Any) -> Any:
    """Return YAML's value as JSON has it; raise `ValueError` for dates, binary and odd keys."""
    match value:
        case float() if not math.isfinite(value):
            raise ValueError(f"{value} is no number that JSON has; put quotes around it")
        case int() if value.bit_length() > LONGEST_NUMBER_BITS:
            raise ValueError("a number is too large; put quotes around it")
        case str() if "\0" in value or (not value.isascii() and _is_cut(value)):
            raise ValueError("a text holds a NUL or half a character")
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [plain(part) for part in value]
        case dict() if all(isinstance(key, str) for key in value):
            return {plain(key): plain(part) for key, part in value.items()}
        case dict():
            raise ValueError("every name must be text; put quotes around it")
    raise ValueError(f"{value!r} is not text, a number, true or false; put quotes around it")


def _is_cut(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def as_yaml(spec: Any) -> str:
    """Return a definition as YAML, in the order in which it was written."""

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML names it
            return True

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


class LaunchForm(forms.Form):
    """What a person gives at launch; its parameters follow the definition's JSON Schema."""

    team = forms.ChoiceField()
    cluster = forms.ChoiceField()
    name = forms.CharField(max_length=250, required=False, help_text="Empty: the definition's.")

    def __init__(
        self, *args: Any, spec: Spec, teams: list[Team], clusters: list[Any], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.spec = spec
        self.fields["team"].choices = [(t.slug, t.name) for t in teams]  # type: ignore[attr-defined] # a ChoiceField
        self.fields["cluster"].choices = [(c.slug, c.name) for c in clusters]  # type: ignore[attr-defined] # as above
        for name, schema in spec.parameters.items():
            self.fields[f"parameters.{name}"] = _field_of(name, schema)
        resources = specs_resources(spec)
        for name, label in RESOURCES.items():
            self.fields[f"resources.{name}"] = forms.IntegerField(
                label=label, min_value=0 if name != "nodes" else 1, initial=resources[name]
            )
        self.fields["time_limit_seconds"] = forms.IntegerField(
            label="Time limit",
            min_value=1,
            max_value=spec.time_limit_seconds,
            initial=spec.time_limit_seconds,
            help_text=f"Seconds, up to the definition's {spec.time_limit_seconds:,}.",
        )

    def parameter_fields(self) -> list[forms.BoundField]:
        """Return the fields of the definition's parameters, in its order."""
        return [self[name] for name in self.fields if name.startswith("parameters.")]

    def resource_fields(self) -> list[forms.BoundField]:
        """Return the fields of the resources."""
        return [self[name] for name in self.fields if name.startswith("resources.")]

    def clean(self) -> dict[str, Any]:
        """Gather parameters and resources; an empty optional one is left to its default."""
        cleaned = super().clean() or {}
        for group in ("parameters", "resources"):
            found = {
                name.removeprefix(f"{group}."): cleaned.pop(name)
                for name in list(cleaned)
                if name.startswith(f"{group}.")
            }
            cleaned[group] = {name: v for name, v in found.items() if v not in (None, "")}
        return cleaned


RESOURCES = {"nodes": "Nodes", "gpus_per_node": "GPUs a node", "cpus_per_node": "CPUs a node"}


def specs_resources(spec: Spec) -> dict[str, int]:
    """Return what the definition asks for, one for nodes and CPUs where it is silent."""
    return {"nodes": 1, "gpus_per_node": 0, "cpus_per_node": 1, **spec.resources}


def _field_of(name: str, schema: Any) -> forms.Field:
    """Return the control for a parameter's JSON Schema."""
    shared = {
        "label": schema.get("title", name),
        "help_text": schema.get("description", ""),
        "initial": schema.get("default"),
        "required": "default" not in schema and schema.get("type") != "boolean",
    }
    match schema.get("type"):
        case _ if "enum" in schema:
            choices = [(value, value) for value in schema["enum"]]
            return forms.TypedChoiceField(choices=choices, coerce=_of_enum(schema), **shared)
        case "boolean":
            return forms.BooleanField(**shared)
        case "integer":
            return forms.IntegerField(**shared)
        case "number":
            return forms.FloatField(**shared)
        case "array":
            return LinesField(**{**shared, "initial": "\n".join(map(str, shared["initial"] or []))})
    return forms.CharField(strip=False, **shared)


def _of_enum(schema: Any) -> Any:
    """Return what turns a chosen text back into the schema's value."""
    by_text = {str(value): value for value in schema["enum"]}
    return lambda text: by_text.get(text, text)


class LinesField(forms.CharField):
    """A list of texts, one a line."""

    widget = forms.Textarea(attrs={"rows": 3})

    def clean(self, value: Any) -> Any:
        """Return the lines that are not empty."""
        text = super().clean(value) or ""
        return [line for line in text.splitlines() if line.strip()]
