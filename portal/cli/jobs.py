"""Commands about jobs."""

import contextlib
import json
import sys
import threading
from typing import Annotated, Any

import typer

from portal.cli import follow as following
from portal.cli import output
from portal.cli.client import Portal
from portal.cli.failure import USAGE, Failure
from portal.cli.session import Session, session_of, team_of

FOLLOW_SECONDS = 0.3
ENDED = ("SUCCEEDED", "FAILED", "CANCELLED")
COLUMNS = ["id", "name", "team", "cluster", "phase", "created_at"]

jobs = typer.Typer(no_args_is_help=True, help="Launch jobs, watch them, stop them.")
Id = Annotated[str, typer.Argument(metavar="ID")]
Team = Annotated[str | None, typer.Option(metavar="SLUG", help="Needed when you are in several.")]
Follow = Annotated[
    bool, typer.Option("--follow", "-f", help="Print its output and end with its exit code.")
]
ForceQueue = Annotated[
    bool, typer.Option("--force-queue", help="Even if no node seen can hold it.")
]
Preview = Annotated[bool, typer.Option("--preview", help="Say what would happen; launch nothing.")]


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
    resource: Annotated[
        list[str] | None,
        typer.Option("--resource", "-r", metavar="NAME=VALUE", help="Such as gpus_per_node=8."),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Repeatable.")] = None,
    time_limit: Annotated[int | None, typer.Option(metavar="SECONDS", min=1)] = None,
    version: Annotated[int | None, typer.Option(min=1, help="Else the newest.")] = None,
    name: Annotated[str, typer.Option(help="For people.")] = "",
    force_queue: ForceQueue = False,  # noqa: FBT002 - typer's way to make a flag
    preview: Preview = False,  # noqa: FBT002 - typer's way to make a flag
    follow: Follow = False,  # noqa: FBT002 - typer's way to make a flag
) -> None:
    """Launch a definition."""
    session = session_of(context)
    portal = session.portal()
    given: dict[str, Any] = {
        "parameters": dict(_parameter(text) for text in parameter or []),
        "resources": dict(_parameter(text) for text in resource or []),
        "tags": {key: str(value) for key, value in map(_parameter, tag or [])},
        "time_limit_seconds": time_limit,
        "version": version,
        "force_queue": force_queue,
    }
    body = {
        "definition": definition,
        "team": team_of(portal, team),
        "cluster": cluster,
        "name": name,
        **{key: value for key, value in given.items() if value},
    }
    if preview:
        _preview(session, portal.send("POST", "jobs", "preview", body=body))
        return
    made = portal.send("POST", "jobs", body=body)
    if not follow:
        session.done(made, f"{made['name']} is in line: {made['id']}")
        return
    output.say(f"{made['name']} is in line: {made['id']}")
    _follow(session, portal, made["id"], stops=True)


def _preview(session: Session, found: dict[str, Any]) -> None:
    if session.as_json:
        output.as_json(found)
        return
    decision = found["decision"]
    words = " ".join(filter(None, (decision["message"], decision["advice"])))
    output.facts({"decision": f"{decision['verdict']}: {words}", **found["resources"]})
    print(found["script"], end="")


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
def stop_job(
    context: typer.Context, ids: Annotated[list[str], typer.Argument(metavar="ID...")]
) -> None:
    """Ask jobs to stop: their checkpoint signal, their grace, then the end."""
    session = session_of(context)
    portal = session.portal()
    if len(ids) == 1:
        found = portal.send("POST", "jobs", ids[0], "stop")
        session.done(found, f"{found['name']} is asked to stop.")
        return
    found = portal.send("POST", "jobs", "stop", body={"ids": ids})
    session.done(found, f"{found['stopped']} of {len(ids)} are asked to stop.")


@jobs.command("retry")
def retry_job(context: typer.Context, job: Id) -> None:
    """Launch a job that has ended once more, as a new job."""
    session = session_of(context)
    made = session.portal().send("POST", "jobs", job, "retry")
    session.done(made, f"{made['name']} is in line: {made['id']}")


@jobs.command("resume")
def resume_job(context: typer.Context, job: Id, follow: Follow = False) -> None:  # noqa: FBT002 - typer's way to make a flag
    """Launch a job that has ended once more, from its last complete checkpoint."""
    session = session_of(context)
    portal = session.portal()
    made = portal.send("POST", "jobs", job, "resume")
    session.done(made, f"{made['name']} is in line: {made['id']}")
    if follow:
        _follow(session, portal, made["id"], stops=True)


@jobs.command("events")
def show_events(context: typer.Context, job: Id) -> None:
    """Show a job's story, oldest first."""
    session = session_of(context)
    rows = session.portal().every("jobs", job, "events")
    session.show(rows, ["at", "kind", "phase", "reason", "message", "actor"])


@jobs.command("metrics")
def show_metrics(context: typer.Context, job: Id) -> None:
    """Show a job's figures: the newest, the mean and the largest value of each series."""
    session = session_of(context)
    found = session.portal().get("jobs", job, "metrics")
    if session.as_json:
        output.as_json(found)
        return
    rows = []
    for name, points in sorted(found["series"].items()):
        values = [value for _at, value in points if value is not None]
        if values:
            mean = sum(values) / len(values)
            shown = (f"{value:.6g}" for value in (values[-1], mean, max(values)))
            rows.append(
                dict(zip(("series", "newest", "mean", "largest"), (name, *shown), strict=True))
            )
    session.show(rows, ["series", "newest", "mean", "largest"])


@jobs.command("logs")
def show_logs(
    context: typer.Context,
    job: Id,
    stream: Annotated[str, typer.Option(help="all, stdout or stderr.")] = "all",
    tail: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="Only so many lines before the end.")
    ] = None,
    follow: Follow = False,  # noqa: FBT002 - typer's way to make a flag
) -> None:
    """Print what a job has written: its standard error goes to standard error."""
    session = session_of(context)
    portal = session.portal()
    begin = portal.get("jobs", job, "logs", stream=stream, tail=tail, limit=1) if tail else {}
    offset = begin.get("offset", 0)
    if follow:
        _follow(session, portal, job, stops=False, stream=stream, offset=offset)
    for piece in following.by_rest(portal, job, stream=stream, offset=offset):
        _print(piece.text, aside=stream == "all" and piece.stream == "stderr")


def _parameter(text: str) -> tuple[str, Any]:
    """Split NAME=VALUE; a value that is JSON is read as such, anything else is text."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Failure(f"{text!r} is not NAME=VALUE.", exit_code=USAGE)
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _follow(
    session: Session,
    portal: Portal,
    job: str,
    *,
    stops: bool,
    stream: str = "all",
    offset: int = 0,
) -> None:
    """Print a stream or both until the job ends, then leave with its exit code."""
    try:
        for piece in following.follow(portal, job, stream=stream, offset=offset):
            is_error = stream == "all" and piece.stream == "stderr"
            _print(piece.text, aside=session.as_json or is_error)
    except KeyboardInterrupt:
        if stops and sys.stdin.isatty() and typer.confirm("Stop the job too?", default=False):
            portal.send("POST", "jobs", job, "stop")
            output.say("It is asked to stop.")
        elif stops:
            output.say(f"The job goes on. Stop it with: slipway jobs stop {job}")
        raise
    found = _ended(portal, job)
    reason = found.get("reason") or {}
    words = f" {reason['message']}" if reason.get("message") and found["exit_code"] != 0 else ""
    output.say(f"{found['name']}: {found['phase'].lower()} ({reason.get('code', '')}).{words}")
    code = found["exit_code"]
    if found["phase"] != "SUCCEEDED" and not code:
        code = 128 + found["signal"] if found["signal"] else 1
    if session.as_json:
        output.as_json(found)
    raise typer.Exit(code or 0)


def _ended(portal: Portal, job: str) -> dict[str, Any]:
    """Return the job once it is over, which its log was a moment ago."""
    while True:
        found: dict[str, Any] = portal.get("jobs", job)
        if found["phase"] in ENDED:
            return found
        threading.Event().wait(FOLLOW_SECONDS)


def _print(text: str, *, aside: bool = False) -> None:
    """Print output as it is; aside means on standard error, where it disturbs no JSON."""
    with contextlib.suppress(BrokenPipeError):
        print(text, end="", flush=True, file=sys.stderr if aside else sys.stdout)
