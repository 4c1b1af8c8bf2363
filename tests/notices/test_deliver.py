"""Deliveries: signed, repeated with patience, given up, sent again; never lost, never at night."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core import mail
from django.db.models.functions import Now
from standardwebhooks import Webhook, WebhookVerificationError

from portal.core import turns
from portal.core.errors import Conflict
from portal.notices import reconcile, senders, services, timing
from portal.notices.models import Delivery, Route
from portal.notices.values import LevelName
from portal.teams.models import Event

BAD, WARN, OK = LevelName.BAD, LevelName.WARN, LevelName.OK


def say(level, team) -> None:
    facts = {"message": "The budget has used 80 %.", "path": "/teams/vision"}
    services.set_level("budget:01J", level, facts, team=team)


def answering(status, headers=None, body=b""):
    return lambda _got: (status, headers or {}, body)


def wait_seconds(delivery: Delivery) -> float:
    return (delivery.due_at - datetime.now(UTC)).total_seconds()


def test_a_webhook_is_signed_so_that_the_standard_library_of_it_agrees(who, hook, route):
    say(WARN, who.team)
    assert reconcile.deliver() == 1
    (got,) = hook.got
    secret = route.signing_secret.reveal()
    body = Webhook(secret).verify(got.body, got.headers)
    assert body["type"] == "notice.level_changed"
    assert body["data"]["message"] == "The budget has used 80 %."
    assert body["data"]["url"].endswith("/teams/vision")
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts, delivery.due_at) == ("delivered", 1, None)
    assert delivery.ended_at is not None
    assert got.headers["webhook-id"] == delivery.pk
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(got.body + b" ", got.headers)
    assert reconcile.deliver() == 0
    assert len(hook.got) == 1


def test_chat_and_mail_say_it_in_a_sentence(who, hook):
    create = services.create_route
    create(who.manager, team=who.team, kind="slack", name="chat", target=hook.url)
    create(who.manager, team=who.team, kind="mail", name="mail", target="ops@example.org")
    say(BAD, who.team)
    assert reconcile.deliver() == 2
    text = json.loads(hook.got[0].body)["text"]
    assert text.startswith("bad: The budget has used 80 %.")
    assert "webhook-signature" not in hook.got[0].headers
    (letter,) = mail.outbox
    assert letter.to == ["ops@example.org"]
    assert letter.subject == "[Slipway] bad: The budget has used 80 %."
    assert Delivery.objects.get(route__name="mail").pk in letter.message()["Message-ID"]
    assert set(Delivery.objects.values_list("state", flat=True)) == {"delivered"}


def test_a_failure_is_repeated_later_under_the_same_id(who, hook, route, make_due):
    hook.answer = answering(500, body=b"out of order")
    say(WARN, who.team)
    reconcile.deliver()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("pending", 1)
    assert delivery.last_error == "The receiver answered 500. out of order"
    assert 0 < wait_seconds(delivery) <= 10
    assert reconcile.deliver() == 0
    hook.answer = answering(204)
    make_due()
    assert reconcile.deliver() == 1
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.last_error) == ("delivered", 2, "")
    assert {got.headers["webhook-id"] for got in hook.got} == {delivery.pk}
    assert hook.got[0].body == hook.got[1].body


@pytest.mark.parametrize("status", [301, 400, 404, 429])
def test_whatever_is_not_taken_is_tried_again(who, hook, route, status):
    hook.answer = answering(status, {"Location": "http://169.254.169.254/"})
    say(WARN, who.team)
    reconcile.deliver()
    assert Delivery.objects.get().state == "pending"
    assert len(hook.got) == 1


@pytest.mark.parametrize(
    ("header", "least", "most"),
    [
        ("120", 100, 120),
        ("Fri, 31 Dec 2999 23:59:59 GMT", 86_000, 86_400),
        ("soon", 0, 10),
        ("-5", 0, 10),
        ("9" * 400, 86_000, 86_400),
    ],
)
def test_retry_after_is_honoured(who, hook, route, header, least, most):
    hook.answer = answering(503, {"Retry-After": header})
    say(WARN, who.team)
    reconcile.deliver()
    assert least <= wait_seconds(Delivery.objects.get()) <= most


def test_a_closed_port_is_a_failure_with_a_sentence(who, hook, route):
    services.update_route(who.manager, route.row, target="http://127.0.0.1:1/")
    say(WARN, who.team)
    reconcile.deliver()
    assert "did not answer" in Delivery.objects.get().last_error


def test_an_address_that_turned_bad_since_is_not_called(who, hook, route, settings):
    settings.WEBHOOK_ALLOW_PRIVATE = False
    say(WARN, who.team)
    reconcile.deliver()
    assert hook.got == []
    assert "private or loopback" in Delivery.objects.get().last_error


def test_dead_letter_and_replay(who, hook, route, make_due):
    hook.answer = answering(500)
    say(WARN, who.team)
    for _ in range(len(timing.DELAYS) + 1):
        make_due()
        reconcile.deliver()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.due_at) == ("dead", None)
    assert delivery.attempts == len(hook.got) == len(timing.DELAYS) + 1
    make_due()
    assert reconcile.deliver() == 0
    hook.answer = answering(200)
    again = services.replay(who.manager, delivery)
    assert (again.pk, again.state, again.attempts) == (delivery.pk, "pending", 0)
    assert reconcile.deliver() == 1
    assert Delivery.objects.get().state == "delivered"
    assert hook.got[-1].headers["webhook-id"] == delivery.pk


def test_a_receiver_that_is_gone_closes_its_route(who, hook, route):
    hook.answer = answering(410)
    say(WARN, who.team)
    reconcile.deliver()
    row = Route.objects.get()
    assert not row.is_enabled
    assert "410" in row.disabled_reason
    assert Delivery.objects.get().state == "dead"
    assert Event.objects.filter(action="route.disabled", team=who.team).count() == 1
    with pytest.raises(Conflict):
        services.test_route(who.manager, row)
    with pytest.raises(Conflict):
        services.replay(who.manager, Delivery.objects.get())
    enabled = services.update_route(who.manager, row, is_enabled=True)
    assert enabled.disabled_reason == ""
    services.test_route(who.manager, enabled)


def test_what_waits_for_a_disabled_route_is_given_up(who, hook, route):
    say(WARN, who.team)
    services.update_route(who.manager, route.row, is_enabled=False)
    reconcile.deliver()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.last_error) == ("dead", "The route is disabled.")
    assert hook.got == []


@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_between_send_and_write_repeats_it_once(who, hook, route, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_args, **_columns):
        raise Killed

    say(WARN, who.team)
    with monkeypatch.context() as patched:
        patched.setattr(reconcile, "_conclude", killed)
        with pytest.raises(Killed):
            reconcile.deliver()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.attempts) == ("pending", 1)
    assert reconcile.deliver() == 0  # the turn of the dead worker still runs
    past = Now() - timedelta(seconds=1)
    Delivery.objects.update(turn_expires_at=past, due_at=past)
    assert reconcile.deliver() == 1
    assert reconcile.deliver() == 0
    assert [got.headers["webhook-id"] for got in hook.got] == [delivery.pk] * 2
    assert Delivery.objects.get().state == "delivered"


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_lost_its_turn_does_not_send(who, hook, route, monkeypatch):
    say(WARN, who.team)
    real = turns.apply

    def late(taken, **columns):
        Delivery.objects.update(turn_expires_at=Now() - timedelta(seconds=1))
        return real(taken, **columns)

    monkeypatch.setattr(turns, "apply", late)
    reconcile.deliver()
    assert hook.got == []
    assert Delivery.objects.get().attempts == 0


def night_route(who, hook):
    return services.create_route(
        who.manager, team=who.team, kind="slack", name="chat", target=hook.url,
        quiet_from="22:00", quiet_until="07:00",
    ).row  # fmt: skip


def test_quiet_hours_hold_back_everything_but_bad(who, hook, make_due):
    route = night_route(who, hook)
    with time_machine.travel(datetime(2026, 3, 28, 22, 0, tzinfo=UTC), tick=False):  # 23:00
        say(WARN, who.team)
        reconcile.deliver()
        delivery = Delivery.objects.get()
        assert (delivery.state, delivery.attempts, hook.got) == ("pending", 0, [])
        assert 7 * 3600 - 60 < _seconds_until_due() <= 7 * 3600  # 7:00 comes an hour earlier
        say(BAD, who.team)
        services.test_route(who.manager, route)
        reconcile.deliver()
        assert len(hook.got) == 2
    with time_machine.travel(datetime(2026, 3, 29, 5, 0, tzinfo=UTC), tick=False):  # 7:00
        make_due()
        reconcile.deliver()
    assert Delivery.objects.get(pk=delivery.pk).state == "delivered"


def _seconds_until_due() -> float:
    from django.db.models import DurationField, ExpressionWrapper, F

    until = ExpressionWrapper(F("due_at") - Now(), output_field=DurationField())
    return Delivery.objects.annotate(until=until).get().until.total_seconds()


def test_a_test_tells_how_it_went(who, hook, route):
    delivery = services.test_route(who.manager, route.row)
    reconcile.deliver()
    delivery.refresh_from_db()
    assert delivery.state == "delivered"
    body = json.loads(hook.got[0].body)
    assert body["type"] == "notice.test"
    assert "manager@example.org" in body["data"]["message"]


def test_a_mail_server_that_is_away_is_a_failure(who, settings):
    services.create_route(
        who.manager, team=who.team, kind="mail", name="mail", target="ops@example.org"
    )
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    say(WARN, who.team)
    reconcile.deliver()
    assert "mail server" in Delivery.objects.get().last_error


def test_a_lost_encryption_key_is_said_so_and_tried_again(who, hook, route, settings):
    say(WARN, who.team)
    settings.ENCRYPTION_KEYS = [b"x" * 32]
    reconcile.deliver()
    assert "SLIPWAY_ENCRYPTION_KEYS" in Delivery.objects.get().last_error


def test_old_deliveries_are_pruned(who, hook, route, make_due):
    say(WARN, who.team)
    reconcile.deliver()
    say(OK, who.team)
    assert reconcile.prune() == 0
    Delivery.objects.filter(state="delivered").update(ended_at=Now() - timedelta(days=31))
    assert reconcile.prune() == 1
    assert Delivery.objects.get().state == "pending"


def test_a_hundred_that_fail_do_not_outlast_the_task(who):
    assert reconcile.LIMIT * senders.SEND_SECONDS < 120
