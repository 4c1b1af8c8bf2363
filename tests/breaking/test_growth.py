"""What would grow for ever if nobody swept it."""

from datetime import timedelta

import pytest
from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session

from portal.core import clock
from portal.teams import reconcile
from tests.people import browser, make_user

pytestmark = pytest.mark.django_db


def test_sessions_that_have_expired_are_swept_and_others_stay() -> None:
    for name in ("ada", "max"):
        assert browser(make_user(name)).get("/me").status_code == 200
    old = Session.objects.order_by("session_key").first()
    assert old is not None
    Session.objects.filter(pk=old.pk).update(expire_date=clock.now() - timedelta(seconds=1))
    reconcile.expire()
    assert Session.objects.count() == 1
    assert not Session.objects.filter(pk=old.pk).exists()
    assert UserSession.objects.count() == 1


@pytest.mark.parametrize("path", ["/", "/account/login/", "/account/password/reset/", "/nope"])
def test_a_stranger_who_only_looks_leaves_no_session_behind(path: str) -> None:
    browser(None).get(path)
    assert not Session.objects.exists()


def test_a_stranger_who_fails_to_sign_in_leaves_no_session_behind() -> None:
    browser(None).post("/account/login/", {"login": "a@example.org", "password": "wrong"})
    browser(None).post("/account/password/reset/", {"email": "a@example.org"})
    assert not Session.objects.exists()
