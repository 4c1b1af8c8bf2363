"""A job to submit as a line for a terminal: the portal's own client, and curl (pure)."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

_OPTIONS = {"parameters": "-p", "resources": "-r", "tags": "--tag"}


def as_cli(body: Mapping[str, Any]) -> str:
    """Return the client's command for a body of `POST /jobs`."""
    words = ["./slipway", "jobs", "run", body["definition"]]
    for name, option in (
        ("version", "--version"),
        ("team", "--team"),
        ("cluster", "--cluster"),
        ("name", "--name"),
        ("time_limit_seconds", "--time-limit"),
    ):
        if name in body:
            words += [option, str(body[name])]
    for group, option in _OPTIONS.items():
        for name, value in body.get(group, {}).items():
            words += [option, f"{name}={_value(value)}"]
    if body.get("force_queue"):
        words.append("--force-queue")
    return shlex.join(words)


def as_curl(body: Mapping[str, Any], *, url: str) -> str:
    """Return the same as a request; the token comes from the environment."""
    address = shlex.quote(f"{url}/api/v1/jobs")
    text = shlex.quote(json.dumps(body, ensure_ascii=False, indent=1))
    return (
        f"curl -sS -X POST {address} \\\n"
        '  -H "Authorization: Bearer $SLIPWAY_TOKEN" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  --data-raw {text}"
    )


def _value(value: Any) -> str:
    """Write a value as the client reads it: JSON, or text that is none."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        json.loads(value)
    except ValueError:
        return value
    return json.dumps(value, ensure_ascii=False)
