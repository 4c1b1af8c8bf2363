"""Levels, not edges: only a change is told, once to each route."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from portal.notices import selectors, services
from portal.notices.models import Delivery, Level
from portal.notices.values import LevelName
from portal.teams.models import Event

BAD, WARN, OK = LevelName.BAD, LevelName.WARN, LevelName.OK


def say(level, team, message="The budget has used 80 %.") -> bool:
    return services.set_level("budget:01J", level, {"message": message}, team=team)


def levels_told() -> list[str]:
    return [d.payload["data"]["level"] for d in Delivery.objects.order_by("change")]


@pytest.fixture
def mail(who):
    return services.create_route(
        who.manager, team=who.team, kind="mail", name="mail", target="ops@example.org"
    ).row


def test_only_a_change_is_told(who, mail):
    assert not say(OK, who.team)  # well from the beginning is no news
    assert say(WARN, who.team)
    assert not say(WARN, who.team, "The budget has used 85 %.")
    assert Level.objects.get().facts == {"message": "The budget has used 85 %."}
    assert say(BAD, who.team)
    assert say(OK, who.team)
    assert levels_told() == ["warn", "bad", "ok"]
    data = Delivery.objects.get(change=2).payload["data"]
    assert (data["previous"], data["matter"], data["team"]) == ("warn", "budget:01J", "vision")
    events = Event.objects.filter(action="notice.changed").order_by("at")
    assert [(e.facts["from"], e.facts["to"]) for e in events] == [
        ("ok", "warn"), ("warn", "bad"), ("bad", "ok"),
    ]  # fmt: skip


def test_a_change_that_is_rolled_back_was_never_told(who, mail):
    from django.db import transaction

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        say(BAD, who.team)
        1 / 0  # noqa: B018
    assert not Level.objects.exists()
    assert levels_told() == []


def test_a_route_hears_of_its_own_scope_and_level_only(who, mail):
    services.create_route(who.admin, team=None, kind="mail", name="site", target="site@example.org")
    services.create_route(
        who.stranger, team=who.other, kind="mail", name="mail", target="x@example.org"
    )
    services.create_route(
        who.manager, team=who.team, kind="mail", name="bad", target="b@example.org", min_level="bad"
    )
    services.create_route(
        who.manager, team=who.team, kind="mail", name="off", target="o@example.org",
        is_enabled=False,
    )  # fmt: skip
    say(WARN, who.team)
    assert [d.route.name for d in Delivery.objects.all()] == ["mail"]
    services.set_level("worker", BAD, {}, team=None)
    assert Delivery.objects.filter(route__name="site").count() == 1
    assert Delivery.objects.count() == 2


def test_the_same_matter_is_another_one_in_another_team(who):
    say(WARN, who.team)
    say(BAD, who.other)
    say(OK, None)
    assert Level.objects.count() == 3
    assert selectors.level_of("budget:01J", team=who.team) is WARN
    assert selectors.level_of("budget:01J", team=who.other) is BAD
    assert selectors.level_of("budget:01J") is OK
    assert selectors.level_of("unheard of") is OK


def test_who_sees_which_levels(who):
    say(WARN, who.team)
    say(WARN, who.other)
    say(OK, None)
    seen = {
        name: {level.team and level.team.slug for level in selectors.levels_for(actor)}
        for name, actor in vars(who).items()
        if name in ("admin", "auditor", "manager", "viewer", "stranger")
    }
    everything = {"vision", "speech", None}
    assert seen == {
        "admin": everything,
        "auditor": everything,
        "manager": {"vision"},
        "viewer": {"vision"},
        "stranger": {"speech"},
    }
    assert {level.team.slug for level in selectors.raised_for(who.admin)} == {"vision", "speech"}


@pytest.mark.django_db(transaction=True)
def test_two_who_say_the_same_at_once_tell_it_once(who, mail):
    """Real threads: the constraint and the guarded update decide, not the order of reading."""

    def run(_number):
        try:
            return say(BAD, who.team)
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        changed = list(pool.map(run, range(6)))
    assert sorted(changed) == [False] * 5 + [True]
    assert levels_told() == ["bad"]
