"""Commands about teams, their members, secrets and events."""

import sys
import threading
from typing import Annotated, Any

import typer

from portal.cli import output
from portal.cli.client import Portal
from portal.cli.failure import USAGE, Failure
from portal.cli.session import session_of, team_of

FOLLOW_SECONDS = 2.0
Team = Annotated[
    str | None, typer.Option("--team", metavar="SLUG", help="The team, if you are in several.")
]

teams = typer.Typer(no_args_is_help=True, help="Teams that you may see.")
members = typer.Typer(no_args_is_help=True, help="People of a team.")
secrets = typer.Typer(no_args_is_help=True, help="Secrets of a team, whose values nobody reads.")


@teams.command("list")
def list_teams(context: typer.Context) -> None:
    """List teams."""
    session = session_of(context)
    session.show(session.portal().every("teams"), ["slug", "name", "role", "time_zone"])


@teams.command("show")
def show_team(context: typer.Context, slug: str) -> None:
    """Show a team with its quotas."""
    session = session_of(context)
    portal = session.portal()
    team = portal.get("teams", slug)
    session.show_one({**team, "quotas": portal.get("teams", slug, "quotas")})


@teams.command("create")
def create_team(
    context: typer.Context,
    slug: str,
    name: Annotated[str, typer.Option(help="The name that people see; else the slug.")] = "",
    time_zone: Annotated[str, typer.Option(help="Such as Europe/Berlin.")] = "UTC",
) -> None:
    """Create a team (site admins)."""
    session = session_of(context)
    body = {"slug": slug, "name": name or slug, "time_zone": time_zone}
    made = session.portal().send("POST", "teams", body=body)
    session.done(made, f"The team {slug} exists now. Add people: slipway members add EMAIL")


@members.command("list")
def list_members(context: typer.Context, team: Team = None) -> None:
    """List the people of a team."""
    session = session_of(context)
    portal = session.portal()
    rows = portal.every("teams", team_of(portal, team), "members")
    session.show(rows, ["email", "name", "role", "is_active"])


@members.command("add")
def add_member(
    context: typer.Context,
    email: str,
    role: Annotated[str, typer.Option(help="viewer, member or manager.")] = "member",
    team: Team = None,
) -> None:
    """Add a person; somebody without an account gets a link, which is printed."""
    session = session_of(context)
    portal = session.portal()
    body = {"email": email, "role": role}
    added = portal.send("POST", "teams", team_of(portal, team), "members", body=body)
    if added["url"] is None:
        session.done(added, f"{email} is a member now.")
        return
    session.done(added, f"{email} has no account yet. Send this link; it works once:")
    if not session.as_json:
        print(added["url"])


@members.command("role")
def change_role(context: typer.Context, email: str, role: str, team: Team = None) -> None:
    """Give a person another role: viewer, member or manager."""
    session = session_of(context)
    portal = session.portal()
    slug = team_of(portal, team)
    user = _member_of(portal, slug, email)
    changed = portal.send("PATCH", "teams", slug, "members", user, body={"role": role})
    session.done(changed, f"{email} is {role} of {slug} now.")


@members.command("remove")
def remove_member(context: typer.Context, email: str, team: Team = None) -> None:
    """Remove a person from a team, or leave it yourself."""
    session = session_of(context)
    portal = session.portal()
    slug = team_of(portal, team)
    portal.send("DELETE", "teams", slug, "members", _member_of(portal, slug, email))
    session.done({"removed": email}, f"{email} is no member of {slug} any more.")


def _member_of(portal: Portal, slug: str, email: str) -> str:
    """Return the id of the member with that address."""
    for member in portal.every("teams", slug, "members"):
        if member["email"] == email.lower():
            return str(member["user"])
    raise Failure(f"{email} is no member of {slug}. See: slipway members list --team {slug}")


@secrets.command("list")
def list_secrets(context: typer.Context, team: Team = None) -> None:
    """List the names of secrets."""
    session = session_of(context)
    portal = session.portal()
    rows = portal.every("teams", team_of(portal, team), "secrets")
    session.show(rows, ["name", "created_by", "updated_at"])


@secrets.command("set")
def set_secret(context: typer.Context, name: str, team: Team = None) -> None:
    """Store a secret; its value comes from standard input, or is asked for unseen."""
    session = session_of(context)
    portal = session.portal()
    slug = team_of(portal, team)
    value = _value(name)
    known = any(secret["name"] == name for secret in portal.every("teams", slug, "secrets"))
    if known:
        kept = portal.send("PUT", "teams", slug, "secrets", name, body={"value": value})
    else:
        body = {"name": name, "value": value}
        kept = portal.send("POST", "teams", slug, "secrets", body=body)
    session.done(kept, f"{name} is {'replaced' if known else 'stored'}.")


@secrets.command("delete")
def delete_secret(context: typer.Context, name: str, team: Team = None) -> None:
    """Delete a secret for good."""
    session = session_of(context)
    portal = session.portal()
    portal.send("DELETE", "teams", team_of(portal, team), "secrets", name)
    session.done({"deleted": name}, f"{name} is deleted.")


def _value(name: str) -> str:
    """Read a secret's value; one line end that a shell has added is taken off."""
    if sys.stdin.isatty():
        return str(typer.prompt(f"Value of {name}", hide_input=True))
    try:
        value = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        message = "A secret is text in UTF-8. Encode bytes first: base64 FILE | slipway secrets …"
        raise Failure(message, exit_code=USAGE) from error
    return value.removesuffix("\n").removesuffix("\r")


def events(
    context: typer.Context,
    team: Team = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest.")] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")] = False,  # noqa: FBT002 - typer's way to make a flag
) -> None:
    """Show what happened in a team, newest first; with --follow as it happens, oldest first."""
    session = session_of(context)
    portal = session.portal()
    slug = team_of(portal, team)
    columns = ["at", "actor", "action", "subject", "facts"]
    if not follow:
        session.show(portal.every("teams", slug, "events", most=limit), columns)
        return
    last = ""
    while True:
        for event in _newer(portal, slug, last, limit):
            last = event["id"]
            if session.as_json:
                output.as_json_line(event)
            else:
                print("  ".join(output.text_of(event[name]) for name in columns), flush=True)
        threading.Event().wait(FOLLOW_SECONDS)


def _newer(portal: Portal, slug: str, last: str, limit: int) -> list[dict[str, Any]]:
    """Return the events after `last`, oldest first; in the beginning the newest `limit`."""
    found: list[dict[str, Any]] = []
    for event in portal.every("teams", slug, "events", most=None if last else limit):
        if event["id"] <= last:
            break
        found.append(event)
    return found[::-1]
