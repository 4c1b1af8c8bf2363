"""What the client prints: JSON, tables that fit the terminal, or tab-separated lines in a pipe."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

Row = Mapping[str, Any]


def as_json(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def as_json_line(value: Any) -> None:
    """Print a value as one line of JSON, at once."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def say(text: str) -> None:
    """Print one sentence to standard error, so that standard output is for results alone."""
    print(clean(text), file=sys.stderr)


def table(rows: Iterable[Row], columns: Sequence[str]) -> None:
    """Print rows: as a table on a terminal, else as tab-separated lines without a head."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(text_of(row.get(name)) for name in columns))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        shown.add_column(name.replace("_", " "), overflow="fold")
    for row in rows:
        shown.add_row(*(Text(_short(row.get(name))) for name in columns))
    if shown.row_count:
        Console().print(shown)
    else:
        say("There is nothing yet.")


def facts(thing: Row) -> None:
    """Print the members of one thing, one a line."""
    wide = max(len(name) for name in thing)
    for name, value in thing.items():
        print(f"{name.replace('_', ' '):<{wide}}  {text_of(value)}")


def text_of(value: Any) -> str:
    """Return a value as one line of text that cannot steer the terminal."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(text_of(part) for part in value)
        case dict():
            return ", ".join(f"{clean(str(k))}={text_of(v)}" for k, v in value.items())
        case _:
            return clean(str(value))


def clean(text: str) -> str:
    """Replace what a terminal would obey instead of show."""
    return "".join(c if c.isprintable() else "�" for c in text)


def _short(value: Any) -> str:
    """Return the text of a value for people: an instant in their own zone, to the minute."""
    text = text_of(value)
    try:
        return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return text
