"""What every command shares: the options of the command line, the portal, the team, the output."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from portal.cli import config, output
from portal.cli.client import Portal
from portal.cli.failure import USAGE, Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The options that work with every command."""

    url: str | None = None
    token: str | None = None
    as_json: bool = False

    def portal(self) -> Portal:
        """Return the portal to speak with; raise `Failure` when nobody is signed in."""
        return Portal(config.account(url=self.url, token=self.token))

    def show(self, rows: Iterable[output.Row], columns: Sequence[str]) -> None:
        """Print a list."""
        if self.as_json:
            output.as_json(list(rows))
        else:
            output.table(rows, columns)

    def show_one(self, thing: output.Row) -> None:
        """Print one thing."""
        (output.as_json if self.as_json else output.facts)(thing)

    def done(self, result: Any, sentence: str) -> None:
        """Print what a change led to: the result as JSON, or a sentence."""
        if self.as_json:
            output.as_json(result)
        else:
            output.say(sentence)


def session_of(context: typer.Context) -> Session:
    """Return the session of a command."""
    found: Session = context.obj
    return found


def team_of(portal: Portal, team: str | None) -> str:
    """Return the team that was named, or the only one there is."""
    if team is not None:
        return team
    slugs = sorted(portal.get("me")["teams"])
    if len(slugs) == 1:
        return str(slugs[0])
    known = f": {', '.join(slugs)}" if slugs else ""
    raise Failure(f"Say which team, with --team SLUG{known}.", exit_code=USAGE)
