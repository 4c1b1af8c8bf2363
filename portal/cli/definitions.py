"""Commands about definitions: what can be launched."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from portal.cli import output
from portal.cli.client import Portal
from portal.cli.failure import USAGE, Failure
from portal.cli.session import session_of, team_of

definitions = typer.Typer(no_args_is_help=True, help="What can be launched.")
Definition = Annotated[str, typer.Argument(help="Slug or id.")]
Team = Annotated[str | None, typer.Option(metavar="SLUG", help="Needed when you are in several.")]
File = Annotated[Path, typer.Argument(help="A YAML file, or - for standard input.")]


@definitions.command("list")
def list_definitions(
    context: typer.Context, team: Annotated[str | None, typer.Option(metavar="SLUG")] = None
) -> None:
    """List the definitions that you may see."""
    session = session_of(context)
    wanted: dict[str, Any] = {"team": team} if team else {}
    columns = ["slug", "name", "team", "version", "saved_at"]
    session.show(session.portal().every("job-definitions", **wanted), columns)


@definitions.command("show")
def show_definition(context: typer.Context, definition: Definition) -> None:
    """Show a definition and its newest version."""
    session = session_of(context)
    session.show_one(_find(session.portal(), definition))


@definitions.command("export")
def export_definition(context: typer.Context, definition: Definition) -> None:
    """Print a definition as YAML, for a file in your repository."""
    import yaml

    found = _find(session_of(context).portal(), definition)
    kept = {"slug": found["slug"], "name": found["name"], "spec": found["spec"]}

    class Dumper(yaml.SafeDumper):
        """Writes text of several lines as it reads."""

    def text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        is_plain = all(letter.isprintable() or letter == "\n" for letter in value)
        style = ("|" if "\n" in value else None) if is_plain else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    yaml.dump(kept, sys.stdout, Dumper, sort_keys=False, allow_unicode=True, width=100)


@definitions.command("import")
def import_definition(context: typer.Context, file: File, team: Team = None) -> None:
    """Create a definition from YAML, or save a new version of the one with that slug."""
    session = session_of(context)
    portal = session.portal()
    raw = _read(file)
    slug = team_of(portal, team)
    there = [
        row for row in portal.every("job-definitions", team=slug) if row["slug"] == raw["slug"]
    ]
    if not there:
        made = portal.send("POST", "job-definitions", body={**raw, "team": slug})
        session.done(made, f"{made['name']} is there, version 1.")
        return
    body = {"name": raw["name"], "spec": raw["spec"]}
    made = portal.send("PUT", "job-definitions", there[0]["id"], body=body)
    session.done(made, f"{made['name']} is saved, version {made['version']}.")


@definitions.command("delete")
def delete_definition(context: typer.Context, definition: Definition) -> None:
    """Delete a definition of a team; its jobs and their versions stay."""
    session = session_of(context)
    portal = session.portal()
    found = _find(portal, definition)
    portal.send("DELETE", "job-definitions", found["id"])
    session.done({"deleted": found["id"]}, f"{found['name']} is deleted.")


def _read(file: Path) -> dict[str, Any]:
    import yaml

    from portal.core import yamls

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
        raw = yamls.load(text)
        json.dumps(raw, allow_nan=False)  # YAML has dates and more that JSON has not
    except (OSError, TypeError, ValueError, yaml.YAMLError) as error:
        raise Failure(f"{file} cannot be read: {error}", exit_code=USAGE) from error
    if not isinstance(raw, dict) or not {"slug", "spec"} <= raw.keys():
        raise Failure(f"{file} needs the keys slug, name and spec.", exit_code=USAGE)
    return {"slug": raw["slug"], "name": raw.get("name", raw["slug"]), "spec": raw["spec"]}


def _find(portal: Portal, definition: str) -> dict[str, Any]:
    """Return the definition of that id or slug; a team's own goes before a built-in one."""
    rows = [
        row for row in portal.every("job-definitions") if definition in (row["id"], row["slug"])
    ]
    if not rows:
        raise Failure(f"There is no definition {definition}.", exit_code=USAGE)
    teams = sorted({row["team"] for row in rows if row["team"]})
    if len(teams) > 1:
        output.say(f"Several teams have {definition} ({', '.join(teams)}): give its id.")
        raise Failure(f"{definition} is not unique.", exit_code=USAGE)
    found: dict[str, Any] = next((row for row in rows if row["team"]), rows[0])
    return found
