"""Links that come into other hands than they were made for."""

import pytest

from portal.teams.models import AuditEvent, Invitation
from portal.teams.services import members
from tests.people import actor_of, an_admin, browser, join, make_team, make_user

pytestmark = pytest.mark.django_db


def test_a_member_who_opens_the_link_of_another_neither_uses_it_up_nor_rises() -> None:
    team, ada = make_team(), make_user("ada")
    join(team, ada, role="viewer")
    invited = members.add_member(actor_of(an_admin()), team, email="new@x.org", role="manager")
    answer = browser(ada).post(f"/invite/{invited.token}")
    assert answer.status_code == 409
    assert team.memberships.get(user=ada).role == "viewer"
    assert Invitation.objects.get().accepted_at is None
    assert not AuditEvent.objects.filter(action="member.joined").exists()


def test_the_audit_log_tells_for_whom_the_link_was_made() -> None:
    team, eve = make_team(), make_user("eve")
    invited = members.add_member(actor_of(an_admin()), team, email="new@x.org", role="member")
    assert browser(eve).post(f"/invite/{invited.token}").status_code == 302
    facts = AuditEvent.objects.get(action="member.joined").facts
    assert facts == {"email": eve.email, "role": "member", "invited": "new@x.org"}
