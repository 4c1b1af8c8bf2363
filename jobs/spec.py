"""What a job definition says: its schema, its checks, and its values once checked (pure).

The raw form is JSON, as REST and YAML files carry it; `parse` makes it a `Spec`. Every fault has a
JSON pointer, so that forms and clients can show it at its place.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, islice
from typing import Any

from jsonschema import Draft202012Validator, ValidationError, validators

from clusters.schedulers.contract import Resources
from jobs import patterns
from jobs.quoting import placeholders, scan, variable_of
from portal.core.errors import FieldError

MOST_FAULTS = 50
UNREAD = frozenset({"$ref", "$dynamicRef", "patternProperties"})
LONGEST_SECONDS = 30 * 24 * 3600
MOST_TEXT = 100_000
"""Bytes of one value: Linux starts no program with 128 KiB in one variable or argument."""
MOST_TEXTS = 1_000_000
"""Bytes of all of them: with 2 MiB together it starts none either."""
NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"
_WHOLE = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}\}")


class Regime(StrEnum):
    """What kind of work the job is."""

    SMOKE = "smoke"
    PRETRAINING = "pretraining"
    POST_TRAINING = "post_training"
    INFERENCE = "inference"
    BATCH = "batch"


class Launch(StrEnum):
    """Where the command runs: on the first node, or once on each."""

    ONCE = "once"
    PER_NODE = "per_node"


def _count(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


_TEXT = {"type": "string", "maxLength": 4096}
_NAMES = {"type": "object", "propertyNames": {"pattern": NAME}, "maxProperties": 200}
_RESOURCES = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "nodes": _count(1, 10_000),
        "gpus_per_node": _count(0, 64),
        "gpu_type": {"type": "string", "maxLength": 50},
        "cpus_per_node": _count(1, 4096),
        "memory_bytes_per_node": _count(0, 1 << 50),
    },
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["regime", "time_limit_seconds"],
    "properties": {
        "regime": {"enum": [str(r) for r in Regime]},
        "description": _TEXT,
        "command": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 1000},
        "script": {"type": "string", "minLength": 1, "maxLength": 262_144},
        "launch": {"enum": [str(v) for v in Launch]},
        "parameters": {**_NAMES, "additionalProperties": {"type": "object"}},
        "image": {"type": "string", "maxLength": 500},
        "resources": _RESOURCES,
        "time_limit_seconds": _count(1, LONGEST_SECONDS),
        "env": {**_NAMES, "additionalProperties": {"type": "string", "maxLength": 32_768}},
        "secrets": {**_NAMES, "additionalProperties": {"type": "string", "maxLength": 100}},
        "data": {
            "type": "array",
            "maxItems": 50,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["source", "target"],
                "properties": {"source": _TEXT, "target": _TEXT, "stage": {"type": "boolean"}},
            },
        },
        "checkpoint": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "path": _TEXT,
                "interval_seconds": _count(1, LONGEST_SECONDS),
                "signal": {"enum": ["INT", "TERM", "USR1", "USR2"]},
                "grace_seconds": _count(1, 3600),
            },
        },
        "retry": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "max_attempts": _count(1, 100),
                "on": {
                    "type": "array",
                    "items": {
                        "enum": [
                            "preempted",
                            "node_failure",
                            "out_of_memory",
                            "lost",
                            "exit_code",
                        ]
                    },
                },
            },
        },
        "spot": {"type": "boolean"},
        "priority": _count(-1000, 1000),
        "tags": {**_NAMES, "additionalProperties": {"type": "string", "maxLength": 250}},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """How the job saves itself; the signal goes to its process group."""

    path: str = ""
    interval_seconds: int | None = None
    signal: str = "TERM"
    grace_seconds: int = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A definition that was checked."""

    regime: Regime
    time_limit_seconds: int
    description: str = ""
    command: tuple[str, ...] = ()
    script: str = ""
    launch: Launch = Launch.ONCE
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    image: str = ""
    resources: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Environment name → secret's name."""
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    max_attempts: int = 1
    retry_on: frozenset[str] = frozenset()
    priority: int = 0
    tags: Mapping[str, str] = field(default_factory=dict)


def _is_integer(_checker: Any, value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _match(_validator: Any, pattern: str, text: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(text, str) and len(text) > patterns.LONGEST:
        yield ValidationError(f"Text with a pattern has at most {patterns.LONGEST} characters.")
    elif isinstance(text, str) and not re.search(pattern, text):
        yield ValidationError(f"{text!r} does not match {pattern!r}")


# An integer has no point (1.0 is none), and no pattern holds the process for long.
_Validator = validators.extend(  # type: ignore[no-untyped-call] # its stubs say nothing
    Draft202012Validator,
    {"pattern": _match},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


def check(raw: Any) -> list[FieldError]:
    """Return the first faults of a raw definition; none means that `parse` takes it."""
    errors = _errors(SCHEMA, raw)
    if errors:
        return errors
    faults = chain(
        _check_either(raw),
        _check_parameters(raw.get("parameters", {})),
        _check_placeholders(raw),
        _check_names(raw),
    )
    return list(islice(faults, MOST_FAULTS))


def parse(raw: Mapping[str, Any]) -> Spec:
    """Return the definition as a value; expects that `check` found nothing."""
    plain = {
        name: raw[name]
        for name in ("description", "script", "parameters", "image", "resources", "env", "secrets")
        if name in raw
    }
    retry = raw.get("retry", {})
    default = Launch.ONCE if "script" in raw else Launch.PER_NODE
    return Spec(
        regime=Regime(raw["regime"]),
        time_limit_seconds=raw["time_limit_seconds"],
        command=tuple(raw.get("command", ())),
        launch=Launch(raw.get("launch", default)),
        checkpoint=Checkpoint(**raw.get("checkpoint", {})),
        max_attempts=retry.get("max_attempts", 1),
        retry_on=frozenset(retry.get("on", ())),
        priority=raw.get("priority", 0),
        tags=raw.get("tags", {}),
        **plain,
    )


def bind(spec: Spec, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldError]]:
    """Return the values of all parameters, defaults filled in, and every fault of what is given."""
    values = {
        name: schema["default"] for name, schema in spec.parameters.items() if "default" in schema
    }
    values |= given
    schema = {
        "type": "object",
        "properties": dict(spec.parameters),
        "required": list(spec.parameters),
        "additionalProperties": False,
    }
    faults = _errors(schema, values, prefix="/parameters")
    return values, faults or list(_check_sizes(spec, values))


def check_resources(given: Mapping[str, Any]) -> list[FieldError]:
    """Return every fault of resources that a person gives at launch."""
    return _errors(_RESOURCES, dict(given), prefix="/resources")


def resources_of(spec: Spec, given: Mapping[str, Any]) -> Resources:
    """Return the definition's resources with what was given in their place.

    Types of GPUs are in lower case, as limits, prices and machines have them.
    """
    wanted = Resources(**{**spec.resources, **given})
    return replace(wanted, gpu_type=wanted.gpu_type.strip().lower())


def text_of(value: Any) -> str:
    """Return a parameter's value as the text that the job sees."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "\n".join(text_of(part) for part in value)
    return str(value)


def environment_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that carry the parameters into the job."""
    return {variable_of(name): text_of(value) for name, value in values.items()}


def argv_of(spec: Spec, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command with its parameters in place; each fills a part of one element."""
    return tuple(
        _WHOLE.sub(lambda found: text_of(values[found.group(1)]), part) for part in spec.command
    )


def script_of(spec: Spec) -> str:
    """Return the script with references in the place of its parameters."""
    return scan(spec.script, known=spec.parameters).text


def _check_sizes(spec: Spec, values: Mapping[str, Any]) -> Iterator[FieldError]:
    sizes = {name: len(text_of(value).encode()) for name, value in values.items()}
    parts = [len(part.encode()) for part in argv_of(spec, values)]
    others = [len(text.encode()) for text in spec.env.values()]
    for name in (name for name, size in sizes.items() if size > MOST_TEXT):
        message = f"Give at most {MOST_TEXT:,} bytes; a job reads more from a file."
        yield FieldError(pointer=f"/parameters/{name}", message=message)
    if max(parts, default=0) > MOST_TEXT:
        message = f"An element of the command would have more than {MOST_TEXT:,} bytes."
        yield FieldError(pointer="/parameters", message=message)
    if sum((*sizes.values(), *parts, *others)) > MOST_TEXTS:
        message = f"Command, values and env would have more than {MOST_TEXTS:,} bytes together."
        yield FieldError(pointer="/parameters", message=message)


def _check_either(raw: Mapping[str, Any]) -> Iterator[FieldError]:
    if ("command" in raw) == ("script" in raw):
        yield FieldError(pointer="/command", message="Give a command or a script, one of the two.")


def _check_parameters(parameters: Mapping[str, Mapping[str, Any]]) -> Iterator[FieldError]:
    seen: dict[str, str] = {}
    for name, schema in parameters.items():
        pointer = f"/parameters/{name}"
        twin = seen.setdefault(name.upper(), name)
        if twin != name:
            yield FieldError(pointer=pointer, message=f"It differs from {twin} only by case.")
        try:
            Draft202012Validator.check_schema(schema)
        except Exception as error:
            yield FieldError(pointer=pointer, message=f"It is not a JSON Schema: {error}"[:300])
            continue
        if why := _unread(schema):
            yield FieldError(pointer=pointer, message=why[:300])
        elif "default" in schema:
            for fault in _errors(schema, schema["default"]):
                message = f"The default does not fit: {fault.message}"[:300]
                yield FieldError(pointer=f"{pointer}/default", message=message)


def _unread(schema: Any) -> str:
    """Return what in a parameter's schema the portal does not read; empty when it reads all."""
    parts = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            for name in part:
                if name in UNREAD:
                    return f"{name} is not read: references, and patterns of names. Write it out."
                if name == "pattern" and (why := patterns.fault_of(str(part[name]))):
                    return why
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return ""


def _check_placeholders(raw: Mapping[str, Any]) -> Iterator[FieldError]:
    known = raw.get("parameters", {})
    if "script" in raw:
        for fault in scan(raw["script"], known=known).faults:
            yield FieldError(pointer="/script", message=f"Line {fault.line}: {fault.message}")
    for index, part in enumerate(raw.get("command", ())):
        for name in placeholders(part):
            if name not in known:
                message = f"There is no parameter {name}; declare it, or correct the name."
                yield FieldError(pointer=f"/command/{index}", message=message)


def _check_names(raw: Mapping[str, Any]) -> Iterator[FieldError]:
    for where in ("env", "secrets"):
        for name in raw.get(where, {}):
            if name.startswith("SLIPWAY_"):
                message = "Names that begin with SLIPWAY_ are the portal's own."
                yield FieldError(pointer=f"/{where}/{name}", message=message)
    for name in set(raw.get("env", {})) & set(raw.get("secrets", {})):
        yield FieldError(pointer=f"/secrets/{name}", message="It is also in env; keep one.")


def _errors(schema: Mapping[str, Any], value: Any, *, prefix: str = "") -> list[FieldError]:
    """Return the first faults of a value."""
    try:
        faults = islice(_Validator(schema).iter_errors(value), MOST_FAULTS)
        return [_error(fault, prefix=prefix) for fault in faults]
    except RecursionError:
        return [FieldError(pointer=prefix, message="It is nested too deeply.")]


def _error(fault: Any, *, prefix: str = "") -> FieldError:
    path = [str(part).replace("~", "~0").replace("/", "~1") for part in fault.absolute_path]
    message = str(fault.message)
    if fault.validator == "required":
        path.append(message.split("'")[1])  # jsonschema raises one fault for each missing name
        message = "This is required."
    elif fault.validator == "additionalProperties" and not fault.schema["additionalProperties"]:
        extra = next(n for n in fault.instance if n not in fault.schema.get("properties", {}))
        path.append(str(extra))
        message = "There is no such field."
    return FieldError(pointer=prefix + "".join(f"/{part}" for part in path), message=message[:300])
