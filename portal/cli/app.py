"""The `slipway` client: its options, signing in and out, and how it ends."""

import contextlib
import sys
from itertools import islice
from typing import Annotated

import typer

from portal.cli import config, output
from portal.cli.client import Portal
from portal.cli.clusters import clusters
from portal.cli.config import Account
from portal.cli.definitions import definitions
from portal.cli.failure import USAGE, Failure
from portal.cli.jobs import jobs
from portal.cli.session import Session, session_of
from portal.cli.teams import events, members, secrets, teams
from portal.cli.tokens import tokens

EPILOG = (
    "--json, --url and --token may stand anywhere. Exit codes: 1 refused, 2 usage, "
    "3 not signed in, 4 cannot reach the portal."
)
WITH_VALUE = ("--url", "--token")

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=EPILOG,
)
for name, group in (
    ("teams", teams),
    ("members", members),
    ("secrets", secrets),
    ("tokens", tokens),
    ("jobs", jobs),
    ("definitions", definitions),
    ("clusters", clusters),
):
    app.add_typer(group, name=name)
app.command("events")(events)


@app.callback()
def options(
    context: typer.Context,
    url: Annotated[str | None, typer.Option(help="The portal's address (SLIPWAY_URL).")] = None,
    token: Annotated[str | None, typer.Option(help="An API token (SLIPWAY_TOKEN).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002 - typer's way to make a flag
) -> None:
    """Slipway on the command line: jobs, definitions, clusters and teams of a portal."""
    context.obj = Session(url=url, token=token, as_json=as_json)


@app.command()
def login(context: typer.Context) -> None:
    """Sign in with an API token, from the prompt or with `--token -` from standard input."""
    session = session_of(context)
    given = config.environment()
    url = session.url or given.url or _ask("Address of the portal", default=given.public_url)
    url = url.rstrip("/")
    token = session.token or given.token
    if token == "-":  # noqa: S105 - the sign for standard input
        token = sys.stdin.readline().strip()
    elif token is None:
        output.say(f"Make a token at {url}/me if you have none.")
        token = _ask("Token", hidden=True)
    if not token:
        raise Failure("No token was given; try again with one.", exit_code=USAGE)
    account = Account(url=url, token=token)
    me = Portal(account).get("me")
    config.write(account)
    session.done({"url": url, "email": me["email"]}, f"Signed in at {url} as {me['email']}.")


@app.command()
def logout(context: typer.Context) -> None:
    """Forget the stored address and token; the token itself goes on until it is revoked."""
    forgotten = config.forget()
    sentence = "Signed out here." if forgotten else "Nobody was signed in here."
    session_of(context).done({"forgotten": forgotten}, sentence)


@app.command()
def whoami(context: typer.Context) -> None:
    """Show who you are, by which token, at which portal."""
    session = session_of(context)
    portal = session.portal()
    me = portal.get("me")
    if session.as_json:
        output.as_json({**me, "url": portal.account.url})
        return
    scopes = me["token"]["scopes"] if me["token"] else []
    token = f"{me['token']['prefix']}… ({', '.join(scopes)})" if me["token"] else "none"
    shown = {"portal": portal.account.url, "email": me["email"], "name": me["name"]}
    site = {"site_role": me["site_role"]} if me["site_role"] else {}
    output.facts({**shown, **site, "teams": me["teams"], "token": token})


def main(arguments: list[str] | None = None) -> None:
    """Run the client and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, ValueError):
            stream.reconfigure(errors="replace")  # type: ignore[union-attr] # a TextIOWrapper
    words = sys.argv[1:] if arguments is None else arguments
    try:
        app(_options_first(words), prog_name="slipway")
    except Failure as failure:
        output.say(f"slipway: {failure}")
        sys.exit(failure.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)


def _options_first(words: list[str]) -> list[str]:
    """Move the options that work with every command to the front, where typer wants them."""
    ours: list[str] = []
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            rest += [word, *waiting]
        elif word == "--json" or word.startswith(("--url=", "--token=")):
            ours.append(word)
        elif word in WITH_VALUE:
            ours += [word, *islice(waiting, 1)]
        else:
            rest.append(word)
    return [*ours, *rest]


def _ask(what: str, *, default: str | None = None, hidden: bool = False) -> str:
    return str(typer.prompt(what, default=default, hide_input=hidden, err=True))
