"""A team with its people, people of the site, a stranger, and a receiver of webhooks."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from portal.notices import services
from portal.notices.models import Delivery
from portal.teams import selectors as teams
from portal.teams.roles import SiteRole
from portal.teams.services import members
from portal.teams.services import teams as team_services
from portal.teams.services.users import create_user
from tests.doubles.receiver import Receiver, receiver


@pytest.fixture
def who(db) -> SimpleNamespace:
    """Actors by what they are, and the team."""
    site = {
        "admin": create_user(email="admin@example.org", site_role=SiteRole.ADMIN),
        "auditor": create_user(email="auditor@example.org", site_role=SiteRole.AUDITOR),
    }
    admin = teams.actor_of(site["admin"])
    team = team_services.create_team(admin, slug="vision", name="Vision", time_zone="Europe/Berlin")
    other = team_services.create_team(admin, slug="speech", name="Speech")
    users = dict(site)
    for role in ("manager", "member", "viewer"):
        users[role] = create_user(email=f"{role}@example.org")
        members.add_member(admin, team, email=f"{role}@example.org", role=role)
    users["stranger"] = create_user(email="stranger@example.org")
    members.add_member(admin, other, email="stranger@example.org", role="manager")
    actors = {name: teams.actor_of(user) for name, user in users.items()}
    return SimpleNamespace(team=team, other=other, users=users, **actors)


@pytest.fixture
def hook(settings) -> Iterator[Receiver]:
    settings.WEBHOOK_ALLOW_PRIVATE = True
    with receiver() as double:
        yield double


@pytest.fixture
def make_due():
    """Let the planned time of every pending delivery come."""
    from django.db.models.functions import Now

    def make_due() -> None:
        Delivery.objects.filter(state="pending").update(due_at=Now())

    return make_due


@pytest.fixture
def route(who, hook):
    return services.create_route(
        who.manager, team=who.team, kind="webhook", name="pager", target=hook.url
    )
