"""Signing in by password, as requests: throttling, sessions, enumeration."""

import pytest
from django.core.cache import cache
from django.test import Client

from portal.teams.services import users
from tests import people

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery staple"
LOGIN = "/account/login/"


@pytest.fixture(autouse=True)
def _no_counts():
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def ada():
    return people.make_user("ada", password=PASSWORD)


def _try(email: str, password: str, client: Client | None = None):
    return (client or Client()).post(LOGIN, {"login": email, "password": password})


def test_the_sixth_wrong_password_is_paused_even_with_the_right_one(ada) -> None:
    for _ in range(5):
        assert "do not match" in _try(ada.email, "wrong").content.decode()
    answer = _try(ada.email, PASSWORD)
    assert answer.status_code == 200
    assert "Too many tries" in answer.content.decode()


def test_one_persons_pause_is_not_anothers(ada) -> None:
    for _ in range(6):
        _try(ada.email, "wrong")
    grace = people.make_user("grace", password=PASSWORD)
    assert _try(grace.email, PASSWORD).status_code == 302


def test_an_unknown_address_gets_the_same_words(ada) -> None:
    known = _try(ada.email, "wrong").content.decode()
    unknown = _try("nobody@example.org", "wrong").content.decode()
    assert "That e-mail and password do not match." in known
    assert "That e-mail and password do not match." in unknown


def test_case_of_the_address_does_not_matter(ada) -> None:
    assert _try("Ada@Example.org", PASSWORD).status_code == 302


def test_a_deactivated_person_cannot_sign_in(ada) -> None:
    users.deactivate(people.actor_of(people.an_admin()), user_id=ada.pk)
    client = Client()
    _try(ada.email, PASSWORD, client)
    assert client.get("/me").status_code == 302


def test_sign_out_everywhere_else_leaves_this_session(ada) -> None:
    here, there = Client(), Client()
    for client in (here, there):
        _try(ada.email, PASSWORD, client)
        assert client.get("/me").status_code == 200
    assert here.post("/me/sessions/end").status_code == 302
    assert here.get("/me").status_code == 200
    assert there.get("/me").status_code == 302


def test_an_own_password_ends_the_one_time_password_and_other_sessions(ada) -> None:
    ada.must_change_password = True
    ada.save(update_fields=["must_change_password"])
    here, there = Client(), Client()
    for client in (here, there):
        _try(ada.email, PASSWORD, client)
    form = {
        "oldpassword": PASSWORD,
        "password1": "another long one",
        "password2": "another long one",
    }
    assert here.post("/account/password/change/", form).status_code == 302
    ada.refresh_from_db()
    assert not ada.must_change_password
    assert there.get("/me").status_code == 302


def test_next_leads_to_own_pages_only(ada) -> None:
    for target in ("https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:x"):
        answer = Client().post(LOGIN, {"login": ada.email, "password": PASSWORD, "next": target})
        assert answer.headers["Location"] in ("/", ""), target
        cache.clear()


def test_nobody_signs_up_alone() -> None:
    assert "by invitation" in Client().get("/account/signup/").content.decode()
    form = {"email": "new@example.org", "password1": PASSWORD}
    Client().post("/account/signup/", form)
    assert not people.User.objects.exists()


def test_a_session_in_use_is_noted_once_a_minute(ada) -> None:
    client = Client(HTTP_USER_AGENT="Lynx")
    client.force_login(ada)
    client.get("/me")
    session = ada.usersession_set.get()
    assert session.user_agent == "Lynx"
    client.get("/me", REMOTE_ADDR="192.0.2.7")
    assert ada.usersession_set.get().last_seen_at == session.last_seen_at
    cache.clear()  # as after a minute
    client.get("/me", REMOTE_ADDR="192.0.2.7")
    assert ada.usersession_set.get().last_seen_at > session.last_seen_at
    assert ada.usersession_set.get().ip == "192.0.2.7"
