"""Commands about jobs and definitions."""

import contextlib
import json
import sys
import threading
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from portal.cli import output
from portal.cli.client import Portal
from portal.cli.failure import USAGE, Failure
from portal.cli.session import Session, session_of, team_of

FOLLOW_SECONDS = 1.0
PIECE_BYTES = 1 << 20
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
COLUMNS = ["id", "name", "team", "cluster", "phase", "created_at"]

jobs = typer.Typer(no_args_is_help=True, help="Launch jobs, watch them, stop them.")
definitions = typer.Typer(no_args_is_help=True, help="What can be launched.")
Id = Annotated[str, typer.Argument(metavar="ID")]
Team = Annotated[str | None, typer.Option(metavar="SLUG", help="Needed when you are in several.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Print its output and end with its exit code.")
]


@jobs.command("run")
def run_job(
    context: typer.Context,
    definition: Annotated[str, typer.Argument(help="Slug or id of a definition.")],
    team: Team = None,
    cluster: Annotated[str, typer.Option(metavar="SLUG")] = "local",
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="Repeatable; JSON or text."),
    ] = None,
    name: Annotated[str, typer.Option(help="For people.")] = "",
    follow: Follow = False,  # noqa: FBT002 - typer's way to make a flag
) -> None:
    """Launch a definition."""
    session = session_of(context)
    portal = session.portal()
    body = {
        "definition": definition,
        "team": team_of(portal, team),
        "cluster": cluster,
        "name": name,
        "parameters": dict(_parameter(text) for text in parameter or []),
    }
    made = portal.send("POST", "jobs", body=body)
    if not follow:
        session.done(made, f"{made['name']} is in line: {made['id']}")
        return
    output.say(f"{made['name']} is in line: {made['id']}")
    _follow(session, portal, made["id"], stops=True)


@jobs.command("list")
def list_jobs(
    context: typer.Context,
    team: Annotated[str | None, typer.Option(metavar="SLUG")] = None,
    phase: Annotated[str | None, typer.Option(help="Such as RUNNING, or QUEUED,RUNNING.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 50,
) -> None:
    """List jobs, newest first."""
    session = session_of(context)
    wanted: dict[str, Any] = {
        key: value for key, value in {"team": team, "phase": phase}.items() if value
    }
    session.show(session.portal().every("jobs", most=limit, **wanted), COLUMNS)


@jobs.command("show")
def show_job(context: typer.Context, job: Id) -> None:
    """Show a job."""
    session = session_of(context)
    found = session.portal().get("jobs", job)
    session.show_one(found)


@jobs.command("stop")
def stop_job(context: typer.Context, job: Id) -> None:
    """Ask a job to stop: its checkpoint signal, its grace, then the end."""
    session = session_of(context)
    found = session.portal().send("POST", "jobs", job, "stop")
    session.done(found, f"{found['name']} is asked to stop.")


@jobs.command("retry")
def retry_job(context: typer.Context, job: Id) -> None:
    """Launch a job that has ended once more, as a new job."""
    session = session_of(context)
    made = session.portal().send("POST", "jobs", job, "retry")
    session.done(made, f"{made['name']} is in line: {made['id']}")


@jobs.command("logs")
def show_logs(
    context: typer.Context,
    job: Id,
    stream: Annotated[str, typer.Option(help="stdout or stderr.")] = "stdout",
    follow: Follow = False,  # noqa: FBT002 - typer's way to make a flag
) -> None:
    """Print what a job has written."""
    session = session_of(context)
    portal = session.portal()
    if follow:
        _follow(session, portal, job, stops=False)
    for text in _pieces(portal, job, stream=stream, waits=False):
        _print(text)


@definitions.command("list")
def list_definitions(
    context: typer.Context, team: Annotated[str | None, typer.Option(metavar="SLUG")] = None
) -> None:
    """List the definitions that you may see."""
    session = session_of(context)
    wanted: dict[str, Any] = {"team": team} if team else {}
    columns = ["slug", "name", "team", "version", "saved_at"]
    session.show(session.portal().every("job-definitions", **wanted), columns)


def _parameter(text: str) -> tuple[str, Any]:
    """Split NAME=VALUE; a value that is JSON is read as such, anything else is text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Failure(f"{text!r} is not NAME=VALUE.", exit_code=USAGE)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _follow(session: Session, portal: Portal, job: str, *, stops: bool) -> None:
    """Print both streams until the job ends, then leave with its exit code."""
    try:
        for text in _pieces(portal, job, stream="stdout", waits=True):
            _print(text, aside=session.as_json)
    except KeyboardInterrupt:
        if stops and sys.stdin.isatty() and typer.confirm("Stop the job too?", default=False):
            portal.send("POST", "jobs", job, "stop")
            output.say("It is asked to stop.")
        raise
    for text in _pieces(portal, job, stream="stderr", waits=False):
        _print(text, aside=True)
    found = portal.get("jobs", job)
    reason = (found.get("reason") or {}).get("code", "")
    output.say(f"{found['name']}: {found['phase'].lower()} ({reason})")
    code = found["exit_code"]
    if found["phase"] != "SUCCEEDED" and not code:
        code = 128 + found["signal"] if found["signal"] else 1
    if session.as_json:
        output.as_json(found)
    raise typer.Exit(code or 0)


def _pieces(portal: Portal, job: str, *, stream: str, waits: bool) -> Iterator[str]:
    """Yield the stream piece by piece; with `waits` until the job has ended."""
    offset = 0
    while True:
        piece = portal.get("jobs", job, "logs", stream=stream, offset=offset, limit=PIECE_BYTES)
        if piece["text"]:
            yield piece["text"]
        moved, offset = piece["next_offset"] > offset, piece["next_offset"]
        if piece["complete"] or (not waits and not moved):
            return
        if not moved:
            threading.Event().wait(FOLLOW_SECONDS)


def _print(text: str, *, aside: bool = False) -> None:
    """Print output as it is; aside means on standard error, where it disturbs no JSON."""
    with contextlib.suppress(BrokenPipeError):
        print(text, end="", flush=True, file=sys.stderr if aside else sys.stdout)
