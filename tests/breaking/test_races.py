"""What happens when the same thing is wished many times at the same instant."""

from functools import partial

import pytest

from portal.core.errors import SlipwayError
from portal.notices import services as notices
from portal.notices.models import Delivery, Route
from portal.notices.values import Kind
from portal.teams.models import AuditEvent, Invitation, Secret
from portal.teams.services import members, secrets
from tests.people import actor_of, an_admin, make_team
from tests.threads import in_threads

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 12


def _outcome(call) -> str:
    try:
        call()
    except SlipwayError as error:
        return error.code
    return "done"


def test_inviting_one_person_many_times_at_once_leaves_one_open_invitation() -> None:
    admin, team = actor_of(an_admin()), make_team()

    def invite(_number: int) -> str:
        return _outcome(lambda: members.add_member(admin, team, email="n@x.org", role="viewer"))

    assert set(in_threads(AT_ONCE, invite)) == {"done"}
    assert Invitation.objects.filter(withdrawn_at=None).count() == 1


def test_deleting_a_secret_many_times_at_once_is_one_deletion_in_the_audit_log() -> None:
    admin, team = actor_of(an_admin()), make_team()
    secrets.create_secret(admin, team, name="KEY", value="v")

    def delete(_number: int) -> str:
        return _outcome(lambda: secrets.delete_secret(admin, team, name="KEY"))

    outcomes = in_threads(AT_ONCE, delete)
    assert sorted(set(outcomes)) == ["done", "not_found"]
    assert outcomes.count("done") == 1
    assert AuditEvent.objects.filter(action="secret.deleted").count() == 1


def test_replacing_a_secret_that_is_deleted_meanwhile_says_that_it_is_gone() -> None:
    admin, team = actor_of(an_admin()), make_team()
    for _ in range(5):
        secrets.create_secret(admin, team, name="KEY", value="v")

        def act(number: int) -> str:
            if number % 4 == 0:
                return _outcome(lambda: secrets.delete_secret(admin, team, name="KEY"))
            return _outcome(lambda: secrets.replace_secret(admin, team, name="KEY", value="w"))

        assert set(in_threads(AT_ONCE, act)) <= {"done", "not_found"}
        assert not Secret.objects.exists()


def test_removing_a_member_many_times_at_once_is_one_removal_in_the_audit_log() -> None:
    admin, team = actor_of(an_admin()), make_team(max="member")
    user_id = team.memberships.get().user_id

    def remove(_number: int) -> str:
        return _outcome(lambda: members.remove_member(admin, team, user_id=user_id))

    assert sorted(in_threads(AT_ONCE, remove)).count("done") == 1
    assert AuditEvent.objects.filter(action="member.removed").count() == 1


def test_a_route_that_is_deleted_while_it_is_tested_changed_and_replayed_is_simply_gone() -> None:
    admin, team = actor_of(an_admin()), make_team()
    for _ in range(5):
        made = notices.create_route(
            admin, team=team, kind=Kind.MAIL, name="ops", target="ops@example.org"
        )
        delivery = notices.test_route(admin, made.row)
        acts = [
            partial(notices.test_route, admin, made.row),
            partial(notices.update_route, admin, made.row, name="other"),
            partial(notices.replay, admin, delivery),
            partial(notices.delete_route, admin, made.row),
        ]

        def act(number: int, acts=acts) -> str:
            return _outcome(acts[number % len(acts)])

        assert set(in_threads(AT_ONCE, act)) <= {"done", "not_found"}
        assert not Route.objects.exists()
        assert not Delivery.objects.exists()
