"""Commands about the own API tokens."""

from datetime import datetime, timedelta
from typing import Annotated

import typer

from portal.cli import output
from portal.cli.session import session_of
from portal.core import clock

tokens = typer.Typer(no_args_is_help=True, help="Your API tokens.")


@tokens.command("list")
def list_tokens(context: typer.Context) -> None:
    """List your tokens, without their text."""
    session = session_of(context)
    columns = ["id", "name", "prefix", "scopes", "team", "expires_at", "last_used_at"]
    session.show(session.portal().every("tokens"), columns)


@tokens.command("create")
def create_token(
    context: typer.Context,
    name: str,
    scope: Annotated[
        list[str] | None, typer.Option(help="read, write or admin; repeatable. Default: read.")
    ] = None,
    team: Annotated[
        str | None, typer.Option(metavar="SLUG", help="Works in this team alone.")
    ] = None,
    expires_days: Annotated[int | None, typer.Option(min=1, max=3650)] = None,
) -> None:
    """Make a token and print it, this once."""
    session = session_of(context)
    body = {"name": name, "scopes": scope or ["read"], "team": team}
    if expires_days is not None:
        body["expires_at"] = _in_days(expires_days).isoformat()
    made = session.portal().send("POST", "tokens", body=body)
    if session.as_json:
        output.as_json(made)
        return
    output.say("This is shown once. Keep it like a password.")
    print(made["token"])


@tokens.command("revoke")
def revoke_token(
    context: typer.Context, token_id: Annotated[str, typer.Argument(metavar="ID")]
) -> None:
    """Revoke a token; what uses it stops at once."""
    session = session_of(context)
    session.portal().send("DELETE", "tokens", token_id)
    session.done({"revoked": token_id}, "The token no longer works.")


def _in_days(days: int) -> datetime:
    return clock.now() + timedelta(days=days)
