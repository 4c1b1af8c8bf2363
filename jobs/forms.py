"""Forms of jobs; a definition is typed as YAML."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

import yaml
from django import forms

from jobs import durations
from jobs import spec as specs
from jobs.spec import Spec
from portal.core import yamls
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


GIB = 1 << 30
LONGEST_YAML = 300_000
LONGEST_NUMBER_BITS = 4096
LONG_TEXT = 1000
"""From this maxLength on a text parameter gets a field of several lines."""


class YamlField(forms.CharField):
    """YAML text that becomes JSON; a mistake is said with its line."""

    widget = forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "autocomplete": "off"})

    def clean(self, value: Any) -> Any:
        """Parse the text; only what JSON can hold comes through."""
        text = super().clean(value)
        if len(text) > LONGEST_YAML:
            raise forms.ValidationError(f"It is longer than {LONGEST_YAML:,} characters.")
        try:
            return plain(yamls.load(text))
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
        usual = asdict(specs.resources_of(spec, {}))
        for name, make in RESOURCES.items():
            self.fields[f"resources.{name}"] = make(initial=usual[name])
        most = spec.time_limit_seconds
        self.fields["time_limit_seconds"] = DurationField(
            label="Time limit",
            most=most,
            initial=most,
            help_text=f"Such as 2 h 30 min, or seconds. Up to {durations.write(most)}, {most:,} s.",
        )
        self.fields["tags"] = TagsField()
        self.fields["force_queue"] = forms.BooleanField(
            label="Queue it even if no machine seen can hold it", required=False
        )

    def parameter_fields(self) -> list[forms.BoundField]:
        """Return the fields of the definition's parameters, in its order."""
        return [self[name] for name in self.fields if name.startswith("parameters.")]

    def resource_fields(self) -> list[forms.BoundField]:
        """Return the fields of the resources."""
        return [self[name] for name in self.fields if name.startswith("resources.")]

    def clean(self) -> dict[str, Any]:
        """Gather parameters and resources; an empty resource is left to the definition."""
        cleaned = super().clean() or {}
        for group in ("parameters", "resources"):
            found = {
                name.removeprefix(f"{group}."): cleaned.pop(name)
                for name in list(cleaned)
                if name.startswith(f"{group}.")
            }
            cleaned[group] = {
                name: value
                for name, value in found.items()
                if value is not None and (value != "" or f"{group}.{name}" in self.data)
            }
        return cleaned


def body_of(spec: Spec, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a launch form's values as a body of `POST /jobs`, without what is usual anyway."""
    usual = asdict(specs.resources_of(spec, {}))
    body = dict(values)
    body["parameters"] = {
        name: value
        for name, value in values["parameters"].items()
        if "default" not in spec.parameters[name] or spec.parameters[name]["default"] != value
    }
    body["resources"] = {n: v for n, v in values["resources"].items() if usual[n] != v}
    if values["time_limit_seconds"] == spec.time_limit_seconds:
        body["time_limit_seconds"] = None
    return {name: value for name, value in body.items() if value}


def values_of(job: Any, spec: Spec) -> dict[str, Any]:
    """Return what the launch form of the definition shows so that the job would run again."""
    known = {f"parameters.{n}": v for n, v in job.parameters.items() if n in spec.parameters}
    resources = {f"resources.{n}": v for n, v in job.resources.items() if n in RESOURCES}
    return {
        "team": job.team.slug,
        "cluster": job.cluster.slug,
        "name": "" if job.name == job.version.definition.name else job.name,
        "time_limit_seconds": min(job.time_limit_seconds, spec.time_limit_seconds),
        "tags": {name: v for name, v in job.tags.items() if spec.tags.get(name) != v},
        **known,
        **resources,
    }


class DurationField(forms.CharField):
    """A span of time as people type it; seconds inside."""

    def __init__(self, *, most: int, **kwargs: Any) -> None:
        super().__init__(max_length=100, **kwargs)
        self.most = most
        self.widget.attrs["autocomplete"] = "off"

    def clean(self, value: Any) -> Any:
        """Return the seconds, from 1 to the most."""
        try:
            seconds = durations.parse(super().clean(value))
        except ValueError as error:
            message = "Write it as 2 h 30 min, 1:30:00 or a number of seconds."
            raise forms.ValidationError(message) from error
        if not 1 <= seconds <= self.most:
            most = durations.write(self.most)
            raise forms.ValidationError(f"Give 1 s to {most}, which the definition allows.")
        return seconds

    def prepare_value(self, value: Any) -> Any:
        """Write seconds as people do."""
        return durations.write(value) if isinstance(value, int) else value


class GibField(forms.FloatField):
    """Memory in GiB; bytes inside, 0 is left to the cluster."""

    def clean(self, value: Any) -> Any:
        """Return whole bytes."""
        gib = super().clean(value)
        return None if gib is None else round(gib * GIB)

    def prepare_value(self, value: Any) -> Any:
        """Write bytes as GiB; 0 is empty."""
        if not isinstance(value, int):
            return value
        return f"{value / GIB:.15g}" if value else ""


class TagsField(forms.CharField):
    """Names and values, one a line: `paper=neurips`."""

    widget = forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "placeholder": "name=value"})

    def __init__(self) -> None:
        text = "One a line, such as paper=neurips. The definition's own are added."
        super().__init__(required=False, help_text=text)

    def clean(self, value: Any) -> Any:
        """Return name → value."""
        lines = [line.strip() for line in (super().clean(value) or "").splitlines()]
        pairs = [line.partition("=") for line in lines if line]
        if any(not name.strip() or not equals for name, equals, _ in pairs):
            raise forms.ValidationError("Write each as name=value, one a line.")
        return {name.strip(): text.strip() for name, _, text in pairs}

    def prepare_value(self, value: Any) -> Any:
        """Write tags one a line."""
        is_tags = isinstance(value, dict)
        return "\n".join(f"{name}={text}" for name, text in value.items()) if is_tags else value


def _count(label: str, least: int) -> Callable[..., forms.Field]:
    return partial(forms.IntegerField, label=label, min_value=least, max_value=10**6)


RESOURCES: dict[str, Callable[..., forms.Field]] = {
    "nodes": _count("Nodes", 1),
    "gpus_per_node": _count("GPUs a node", 0),
    "gpu_type": partial(
        forms.CharField, label="GPU type", required=False, max_length=50, help_text="Empty: any."
    ),
    "cpus_per_node": _count("CPUs a node", 1),
    "memory_bytes_per_node": partial(
        GibField,
        label="Memory a node, GiB",
        required=False,
        min_value=0,
        max_value=1 << 20,
        help_text="Empty: as the definition or the cluster has it.",
    ),
}


def _field_of(name: str, schema: Any) -> forms.Field:
    """Return the control for a parameter's JSON Schema; only a text may be left empty."""
    kind = schema.get("type")
    shared = {
        "label": schema.get("title", name),
        "help_text": schema.get("description", ""),
        "initial": schema.get("default"),
        "required": kind != "boolean" and not (kind == "string" and "default" in schema),
    }
    match kind:
        case _ if "enum" in schema:
            choices = [(value, value) for value in schema["enum"]]
            return forms.TypedChoiceField(choices=choices, coerce=_of_enum(schema), **shared)
        case "boolean":
            return forms.BooleanField(**shared)
        case "integer":
            return forms.IntegerField(**shared)
        case "number":
            return forms.FloatField(**shared)
        case "array" if schema.get("items", {}).get("type", "string") in LinesField.KINDS:
            kind = schema.get("items", {}).get("type", "string")
            return LinesField(kind=kind, **{**shared, "required": False})
        case "array" | "object":
            return forms.JSONField(**shared)
    is_long = schema.get("maxLength", 0) >= LONG_TEXT
    return (TextField if is_long else forms.CharField)(strip=False, **shared)


def _of_enum(schema: Any) -> Any:
    """Return what turns a chosen text back into the schema's value."""
    by_text = {str(value): value for value in schema["enum"]}
    return lambda text: by_text.get(text, text)


class TextField(forms.CharField):
    """A text that may have several lines, ended as a shell wants them."""

    widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})

    def to_python(self, value: Any) -> str:
        """Return the text without the carriage returns that browsers send."""
        return (super().to_python(value) or "").replace("\r\n", "\n")


class LinesField(forms.CharField):
    """A list of texts or numbers, one a line."""

    KINDS: ClassVar[Mapping[str, Callable[[str], Any]]] = {
        "string": str,
        "integer": int,
        "number": float,
    }
    widget = forms.Textarea(attrs={"rows": 3})

    def __init__(self, *, kind: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.of_text = self.KINDS[kind]

    def clean(self, value: Any) -> Any:
        """Return the lines that are not empty."""
        text = super().clean(value) or ""
        try:
            return [self.of_text(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise forms.ValidationError("Give a number on each line.") from error

    def prepare_value(self, value: Any) -> Any:
        """Write a list one a line."""
        return "\n".join(map(str, value)) if isinstance(value, list) else value
