"""Rules of people, members, invitations, limits, tokens and secrets, where they are made."""

from datetime import timedelta
from decimal import Decimal

import pytest

from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotAllowed, NotFound
from portal.teams import selectors
from portal.teams.models import ApiToken, AuditEvent, Event, Invitation, Membership, Secret, User
from portal.teams.roles import Role
from portal.teams.services import limits, members, secrets, teams, tokens, users
from tests.people import actor_of, make_team, make_user, make_world, token_of
from tests.threads import in_threads

pytestmark = pytest.mark.django_db
PASSWORD = "a long enough passphrase"


@pytest.fixture
def world(db):
    return make_world()


def role_of(world, persona):
    user = world.people[persona]
    return Membership.objects.get(team=world.team, user=user).role


# Members ------------------------------------------------------------------------------------------


def test_a_known_person_joins_at_once_whatever_the_case(world):
    make_user("ada")
    added = members.add_member(
        world.actor("manager"), world.team, email=" ADA@Example.ORG ", role="member"
    )
    assert (added.user.email, added.role) == ("ada@example.org", "member")
    with pytest.raises(Conflict, match="member already"):
        members.add_member(
            world.actor("manager"), world.team, email="ada@example.org", role="viewer"
        )


def test_a_deactivated_person_is_not_added(world):
    ada = make_user("ada")
    users.deactivate(world.actor("admin"), user_id=ada.pk)
    with pytest.raises(Conflict, match="deactivated"):
        members.add_member(world.actor("manager"), world.team, email=ada.email, role="viewer")


@pytest.mark.parametrize(
    "email",
    ["", "ada", "a@b@c.org", "ä@example.org", "a" * 320, "a" * 310 + "@exam.org", "a\0@b.org"],
)
def test_what_is_no_address_is_refused_with_its_pointer(world, email):
    with pytest.raises(Invalid) as caught:
        members.add_member(world.actor("manager"), world.team, email=email, role="viewer")
    assert [e.pointer for e in caught.value.errors] == ["/email"]


def test_the_last_manager_stays_unless_an_admin_decides(world):
    manager = world.actor("manager")
    for change in (
        lambda: members.change_role(manager, world.team, user_id=manager.user_id, role="viewer"),
        lambda: members.remove_member(manager, world.team, user_id=manager.user_id),
    ):
        with pytest.raises(Conflict, match="needs a manager"):
            change()
    members.change_role(manager, world.team, user_id=world.people["member"].pk, role="manager")
    members.remove_member(manager, world.team, user_id=manager.user_id)
    last = world.people["member"].pk
    members.remove_member(world.actor("admin"), world.team, user_id=last)
    assert not world.team.memberships.filter(role=Role.MANAGER).exists()


@pytest.mark.django_db(transaction=True)
def test_two_managers_cannot_leave_at_the_same_instant(world):
    members.change_role(
        world.actor("manager"), world.team, user_id=world.people["member"].pk, role="manager"
    )
    leaving = [world.actor("manager"), world.actor("member")]

    def leave(number):
        try:
            members.remove_member(leaving[number], world.team, user_id=leaving[number].user_id)
        except Conflict:
            return "kept"
        return "left"

    assert sorted(in_threads(2, leave)) == ["kept", "left"]
    assert world.team.memberships.filter(role=Role.MANAGER).count() == 1


def test_who_leaves_loses_the_tokens_of_the_team_and_no_others(world):
    user = world.people["member"]
    bound = token_of(user, team=world.team)
    free = token_of(user)
    members.remove_member(actor_of(user), world.team, user_id=user.pk)
    assert selectors.live_token(tokens.digest_of(bound)) is None
    assert selectors.live_token(tokens.digest_of(free)) is not None


# Invitations --------------------------------------------------------------------------------------


def invite(world, email="new@example.org", role="member"):
    return members.add_member(world.actor("manager"), world.team, email=email, role=role)


def accept(token, **given):
    return members.accept_invitation(token, **{"name": "New", "password": PASSWORD, **given})


def test_a_link_works_once_and_makes_a_member(world):
    invited = invite(world)
    user = accept(invited.token)
    assert (user.email, user.check_password(PASSWORD)) == ("new@example.org", True)
    assert Membership.objects.get(user=user).role == "member"
    with pytest.raises(NotFound, match="used already"):
        accept(invited.token)


def test_the_link_is_not_kept(world):
    invited = invite(world)
    row = Invitation.objects.get()
    assert invited.token not in str(vars(row))
    assert invited.token not in str(list(AuditEvent.objects.values()))


@pytest.mark.parametrize("end", ["expired", "replaced", "withdrawn", "unknown"])
def test_a_link_that_has_ended_says_so(world, end):
    invited = invite(world)
    token, words = invited.token, "not valid"
    if end == "expired":
        Invitation.objects.update(expires_at=clock.now())
        words = "expired"
    elif end == "replaced":
        invite(world)
    elif end == "withdrawn":
        members.withdraw_invitation(
            world.actor("manager"), world.team, invitation_id=invited.invitation.pk
        )
    else:
        token = "nobody"
    with pytest.raises(NotFound, match=words):
        accept(token)
    assert not User.objects.filter(email="new@example.org").exists()


def test_a_weak_password_uses_no_link_up(world):
    invited = invite(world)
    with pytest.raises(Invalid) as caught:
        accept(invited.token, password="password")
    assert caught.value.errors[0].pointer == "/password"
    assert accept(invited.token).email == "new@example.org"


@pytest.mark.django_db(transaction=True)
def test_of_two_who_take_a_link_at_once_one_gets_it(world):
    invited = invite(world)

    def take(_number):
        try:
            return accept(invited.token).email
        except (NotFound, Conflict) as error:
            return error.code

    found = in_threads(2, take)
    assert found.count("new@example.org") == 1
    assert User.objects.filter(email="new@example.org").count() == 1


def test_whoever_is_signed_in_joins_as_oneself(world):
    invited = invite(world, role="viewer")
    other = world.people["other"]
    members.accept_invitation(invited.token, user=other)
    assert role_of(world, "other") == "viewer"
    assert not User.objects.filter(email="new@example.org").exists()


# People -------------------------------------------------------------------------------------------


def test_the_last_admin_stays(world):
    admin = world.actor("admin")
    for change in (
        lambda: users.set_site_role(admin, user_id=admin.user_id, site_role="auditor"),
        lambda: users.deactivate(admin, user_id=admin.user_id),
    ):
        with pytest.raises(Conflict, match="needs an admin"):
            change()
    users.set_site_role(admin, user_id=world.people["viewer"].pk, site_role="admin")
    users.deactivate(admin, user_id=admin.user_id)


@pytest.mark.django_db(transaction=True)
def test_two_admins_cannot_step_down_at_the_same_instant(world):
    users.set_site_role(world.actor("admin"), user_id=world.people["viewer"].pk, site_role="admin")
    stepping = [world.actor("admin"), world.actor("viewer")]

    def step_down(number):
        try:
            users.set_site_role(stepping[number], user_id=stepping[number].user_id, site_role="")
        except Conflict:
            return "kept"
        return "down"

    assert sorted(in_threads(2, step_down)) == ["down", "kept"]


def test_who_is_deactivated_keeps_teams_and_loses_tokens_for_good(world):
    user = world.people["member"]
    text = token_of(user)
    users.deactivate(world.actor("admin"), user_id=user.pk)
    assert selectors.live_token(tokens.digest_of(text)) is None
    users.reactivate(world.actor("admin"), user_id=user.pk)
    assert selectors.live_token(tokens.digest_of(text)) is None
    assert role_of(world, "member") == "member"


# Teams and limits ---------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", ["Vision", "VISION", "a_b", "-a", "a-", "", "é", "a" * 41, "a b"])
def test_a_slug_has_one_shape_so_none_collide_by_case(world, slug):
    with pytest.raises(Invalid) as caught:
        teams.create_team(world.actor("admin"), slug=slug, name="x")
    assert caught.value.errors[0].pointer == "/slug"


def test_a_taken_slug_is_a_conflict_beside_its_field(world):
    with pytest.raises(Conflict) as caught:
        teams.create_team(world.actor("admin"), slug="vision", name="x")
    assert caught.value.errors[0].pointer == "/slug"


def test_a_time_zone_that_nobody_knows_is_refused(world):
    with pytest.raises(Invalid, match="no time zone"):
        teams.update_team(world.actor("manager"), world.team, time_zone="Mars/Olympus")


RAISES = [
    ({"gpus": 8}, {"gpus": 9}),
    ({"gpus": 8}, {"gpus": None}),
    ({"running_jobs": 0}, {"running_jobs": 1}),
    ({"gpus_by_type": {"h100": 4}}, {"gpus_by_type": {"h100": 5}}),
    ({"gpus_by_type": {"h100": 4}}, {"gpus_by_type": {}}),
    ({"gpu_hours_per_month": "10"}, {"gpu_hours_per_month": "10.0001"}),
]
LOWERS = [
    ({}, {"gpus": 8}),
    ({"gpus": 8}, {"gpus": 7}),
    ({"gpus": 8}, {"gpus": 8}),
    ({"gpus_by_type": {"h100": 4}}, {"gpus_by_type": {"h100": 4, "a100": 0}}),
    ({"gpu_hours_per_month": "10"}, {"gpu_hours_per_month": "9.9999"}),
]


@pytest.mark.parametrize(("before", "wanted"), RAISES)
def test_raising_takes_an_admin(world, before, wanted):
    limits.set_limits(world.actor("admin"), world.team, wanted=before)
    with pytest.raises(NotAllowed) as caught:
        limits.set_limits(world.actor("manager"), world.team, wanted=wanted)
    assert caught.value.facts["fields"] == list(wanted)
    limits.set_limits(world.actor("admin"), world.team, wanted=wanted)


@pytest.mark.parametrize(("before", "wanted"), LOWERS)
def test_a_manager_lowers(world, before, wanted):
    limits.set_limits(world.actor("admin"), world.team, wanted=before)
    changed = limits.set_limits(world.actor("manager"), world.team, wanted=wanted)
    for key, value in wanted.items():
        is_hours = key == "gpu_hours_per_month"
        assert getattr(changed, key) == (Decimal(value) if is_hours else value)


@pytest.mark.parametrize(
    ("wanted", "pointer"),
    [
        ({"gpus": -1}, "/gpus"),
        ({"gpus": 1.5}, "/gpus"),
        ({"gpus": True}, "/gpus"),
        ({"gpus": "8"}, "/gpus"),
        ({"gpus": 10**9}, "/gpus"),
        ({"gpus_by_type": []}, "/gpus_by_type"),
        ({"gpus_by_type": {"h\0": 1}}, "/gpus_by_type"),
        ({"gpu_hours_per_month": "many"}, "/gpu_hours_per_month"),
        ({"gpu_hours_per_month": "NaN"}, "/gpu_hours_per_month"),
        ({"gpu_hours_per_month": "1e400"}, "/gpu_hours_per_month"),
        ({"gpu_hours_per_month": "0.00001"}, "/gpu_hours_per_month"),
        ({"gpu_hours_per_month": [1]}, "/gpu_hours_per_month"),
        ({"cpus": 1}, "/cpus"),
    ],
)
def test_a_limit_that_is_none_changes_nothing(world, wanted, pointer):
    with pytest.raises(Invalid) as caught:
        limits.set_limits(world.actor("admin"), world.team, wanted={"nodes": 1, **wanted})
    assert [e.pointer for e in caught.value.errors] == [pointer]
    assert selectors.limit_for(world.actor("admin"), world.team).nodes is None


# Tokens -------------------------------------------------------------------------------------------


def test_a_token_is_256_bits_of_which_only_the_digest_is_kept(world):
    minted = tokens.create_token(world.actor("viewer"), name="x", scopes=["read"])
    assert len(minted.text) >= 4 + 256 // 6
    assert minted.text.startswith(minted.row.prefix)
    assert minted.text not in str(list(ApiToken.objects.values()))
    assert minted.text not in str(list(Event.objects.values()))


@pytest.mark.parametrize(
    ("own", "wanted"),
    [(["read"], ["read"]), (["write"], ["admin"]), (["write"], ["read", "admin"])],
)
def test_a_token_makes_none_that_may_do_more(world, own, wanted):
    admin = world.people["admin"]
    maker = actor_of(admin, token=token_of(admin, scopes=own))
    with pytest.raises(NotAllowed):
        tokens.create_token(maker, name="x", scopes=wanted)


def test_a_bound_token_makes_only_tokens_of_its_team(world):
    admin = world.people["admin"]
    maker = actor_of(admin, token=token_of(admin, team=world.team))
    for team in (None, world.other):
        with pytest.raises((NotAllowed, NotFound)):
            tokens.create_token(maker, name="x", scopes=["read"], team=team)
    made = tokens.create_token(maker, name="x", scopes=["read"], team=world.team)
    assert made.row.team == world.team


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"name": " "}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"scopes": []}, "/scopes"),
        ({"scopes": ["root"]}, "/scopes"),
        ({"expires_at": clock.now() - timedelta(seconds=1)}, "/expires_at"),
    ],
)
def test_a_token_that_makes_no_sense(world, given, pointer):
    with pytest.raises(Invalid) as caught:
        tokens.create_token(world.actor("viewer"), **{"name": "x", "scopes": ["read"], **given})
    assert [e.pointer for e in caught.value.errors] == [pointer]


@pytest.mark.parametrize(
    ("persona", "may"),
    [("viewer", True), ("manager", True), ("admin", True), ("member", False), ("other", False)],
)
def test_who_ends_a_token_of_the_team(world, persona, may):
    text = token_of(world.people["viewer"], scopes=["read"], team=world.team)
    row = ApiToken.objects.get(digest=tokens.digest_of(text))
    if may:
        tokens.revoke_token(world.actor(persona), row)
    else:
        with pytest.raises(NotFound):
            tokens.revoke_token(world.actor(persona), row)
    assert (selectors.live_token(row.digest) is None) == may


# Secrets ------------------------------------------------------------------------------------------


def test_a_secret_is_never_readable(world):
    value = "correct horse battery"
    secret = secrets.create_secret(world.actor("manager"), world.team, name="KEY", value=value)
    row = Secret.objects.get()
    assert value.encode() not in bytes(row.ciphertext)
    assert value not in repr(secret)
    assert value not in str(list(Event.objects.values()) + list(AuditEvent.objects.values()))
    before = bytes(row.ciphertext)
    secrets.replace_secret(world.actor("manager"), world.team, name="KEY", value=value)
    row.refresh_from_db()
    assert bytes(row.ciphertext) != before


@pytest.mark.parametrize("name", ["", "1A", "A B", "A\0", "é", "A" * 101, "A/B"])
def test_a_name_that_no_environment_takes(world, name):
    with pytest.raises(Invalid) as caught:
        secrets.create_secret(world.actor("manager"), world.team, name=name, value="x")
    assert caught.value.errors[0].pointer == "/name"


@pytest.mark.parametrize("value", ["", "é" * 32769])
def test_a_value_has_1_byte_to_64_kib(world, value):
    with pytest.raises(Invalid) as caught:
        secrets.create_secret(world.actor("manager"), world.team, name="A", value=value)
    assert caught.value.errors[0].pointer == "/value"


def test_two_teams_may_use_one_name(world):
    for persona, team in (("manager", world.team), ("other", world.other)):
        secrets.create_secret(world.actor(persona), team, name="KEY", value="x")
    with pytest.raises(Conflict):
        secrets.create_secret(world.actor("manager"), world.team, name="KEY", value="x")


def test_every_change_of_power_is_in_the_audit_log(world):
    manager = world.actor("manager")
    secrets.create_secret(manager, world.team, name="KEY", value="x")
    members.remove_member(manager, world.team, user_id=world.people["member"].pk)
    found = AuditEvent.objects.filter(team_slug="vision").values_list("action", "actor_label")
    assert {("secret.created", manager.email), ("member.removed", manager.email)} <= set(found)


def test_a_refused_wish_leaves_no_event(world):
    before = Event.objects.count()
    with pytest.raises(NotAllowed):
        secrets.create_secret(world.actor("viewer"), world.team, name="KEY", value="x")
    with pytest.raises(NotFound):
        secrets.create_secret(world.actor("other"), world.team, name="KEY", value="x")
    assert Event.objects.count() == before
    assert make_team().slug != world.team.slug
