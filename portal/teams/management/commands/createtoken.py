"""Makes an API token from the shell of the portal's machine."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.core import clock
from portal.core.errors import SlipwayError
from portal.teams import selectors
from portal.teams.models import User
from portal.teams.roles import Scope
from portal.teams.services import tokens

MOST_DAYS = 3650


class Command(BaseCommand):
    """Prints only the token."""

    help = "Create an API token for a person and print only the token."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--user", required=True, metavar="EMAIL")
        parser.add_argument("--name", required=True)
        parser.add_argument("--team", metavar="SLUG")
        parser.add_argument(
            "--scope", action="append", choices=[str(s) for s in Scope], help="repeatable"
        )
        parser.add_argument("--expires-days", type=int)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run."""
        user = User.objects.filter(email=options["user"].strip().lower(), is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active person {options['user']}.")
        days = options["expires_days"]
        if days is not None and not 1 <= days <= MOST_DAYS:
            raise CommandError(f"--expires-days takes 1 to {MOST_DAYS} days; without it, for ever.")
        try:
            actor = selectors.actor_of(user)
            team = selectors.team_for(actor, options["team"]) if options["team"] else None
            minted = tokens.create_token(
                actor,
                name=options["name"],
                scopes=options["scope"] or [Scope.READ, Scope.WRITE],
                team=team,
                expires_at=clock.now() + timedelta(days=days) if days else None,
            )
        except SlipwayError as error:
            fields = "".join(f" {e.pointer}: {e.message}" for e in error.errors)
            raise CommandError(f"{error.message}{fields}") from error
        self.stdout.write(minted.text)
