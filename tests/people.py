"""Arranges people and teams through the services, one person for each kind of power."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from django.test import Client
from rest_framework.test import APIClient

from portal.teams import selectors
from portal.teams.models import Team, User
from portal.teams.roles import Actor, SiteRole
from portal.teams.services import members, teams, tokens, users

_numbers = count(1)
IN_TEAM = ("viewer", "member", "manager")
ON_SITE = ("auditor", "admin")
PERSONAS = ("anonymous", "other", *IN_TEAM, *ON_SITE)


def make_user(name: str = "", *, password: str | None = None, site_role: str = "") -> User:
    name = name or f"person-{next(_numbers)}"
    return users.create_user(
        email=f"{name}@example.org", password=password, name=name, site_role=SiteRole(site_role)
    )


def actor_of(user: User, *, token: str | None = None) -> Actor:
    """The actor as of now: by the session, or by the text of a token."""
    if token is None:
        return selectors.actor_of(User.objects.get(pk=user.pk))
    row = selectors.live_token(tokens.digest_of(token))
    assert row is not None
    return selectors.actor_of(row.user, token=row)


def an_admin() -> User:
    found = User.objects.filter(site_role=SiteRole.ADMIN, is_active=True).first()
    return found or make_user(f"root-{next(_numbers)}", site_role="admin")


def make_team(slug: str = "", *, name: str = "", **roles: str) -> Team:
    """A team; `roles` maps names of new people to their roles in it."""
    admin = actor_of(an_admin())
    slug = slug or f"team-{next(_numbers)}"
    team = teams.create_team(admin, slug=slug, name=name or slug)
    for person, role in roles.items():
        join(team, make_user(person), role=role)
    return team


def join(team: Team, user: User, *, role: str) -> None:
    members.add_member(actor_of(an_admin()), team, email=user.email, role=role)


def token_of(user: User, *, scopes: Sequence[str] = ("admin",), team: Team | None = None) -> str:
    return tokens.create_token(actor_of(user), name="tests", scopes=scopes, team=team).text


def api_client(user: User | None, **narrowed: Any) -> APIClient:
    """A client that sends a bearer token of the user, or none."""
    client = APIClient(raise_request_exception=False)
    if user is not None:
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(user, **narrowed)}")
    return client


def browser(user: User | None) -> Client:
    """A client with the user's session, or none."""
    client = Client(raise_request_exception=False)
    if user is not None:
        client.force_login(user)
    return client


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A team with a person of each role, another team, and the people of the site."""

    team: Team
    other: Team
    people: dict[str, User | None] = field(default_factory=dict)

    def actor(self, persona: str) -> Actor:
        user = self.people[persona]
        assert user is not None
        return actor_of(user)


def make_world(*, slug: str = "vision", other: str = "speech") -> World:
    people: dict[str, User | None] = {"anonymous": None}
    people |= {role: make_user(role, site_role=role) for role in ON_SITE}
    people |= {name: make_user(name) for name in (*IN_TEAM, "other")}
    world = World(team=make_team(slug), other=make_team(other), people=people)
    for role in IN_TEAM:
        join(world.team, people[role], role=role)
    join(world.other, people["other"], role="manager")
    return world
