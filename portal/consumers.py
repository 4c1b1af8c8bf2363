"""The feed socket: what changed in the teams that a person may see.

A message carries ids and numbers; the page fetches what it shows.
"""

from typing import Any

from channels.db import database_sync_to_async

from portal.teams import selectors
from portal.teams.roles import Actor
from portal.teams.sockets import RIGHTS, PersonSocket

MOST_TEAMS = 200


class FeedConsumer(PersonSocket):
    """`/ws/v1/feed`: `{"type": "changed", "kind": …, "team": slug}`."""

    groups_of: dict[str, str]

    async def check(self) -> None:
        """Listen to the teams that the actor is a member of now."""
        have = getattr(self, "groups_of", {})
        wanted = await database_sync_to_async(_groups_of)(self.actor)
        for group in have.keys() - wanted.keys():
            await self.channel_layer.group_discard(group, self.channel_name)
        for group in wanted.keys() - have.keys():
            await self.channel_layer.group_add(group, self.channel_name)
        self.groups_of = wanted

    async def end(self) -> None:
        """Leave every group."""
        for group in getattr(self, "groups_of", {}):
            await self.channel_layer.group_discard(group, self.channel_name)

    async def hint(self, message: dict[str, Any]) -> None:
        """Pass a hint of the channel layer on."""
        if message.get("kind") in RIGHTS:
            await self.check_again()
            return
        facts = {key: value for key, value in message.items() if key != "type"}
        await self.send_json({"type": "changed", **facts})


def _groups_of(actor: Actor) -> dict[str, str]:
    """Return the groups of the teams to listen to → the team's slug."""
    teams = selectors.teams_for(actor).values_list("pk", "slug")[:MOST_TEAMS]
    return {f"team.{pk}": slug for pk, slug in teams}
