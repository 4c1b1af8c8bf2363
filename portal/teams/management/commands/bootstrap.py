"""Creates the first admin; used by the supervisor."""

import json
from typing import Any

from django.core.management.base import BaseCommand

from portal.teams.services import users


class Command(BaseCommand):
    """Prints `{"created", "email", "password"}`; the password only when one was made."""

    help = "Create the first admin, once."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run."""
        made = users.bootstrap()
        answer: dict[str, Any] = {"created": made is not None, "email": None, "password": None}
        if made is not None:
            answer |= {"email": made[0].email, "password": made[1]}
        self.stdout.write(json.dumps(answer))
