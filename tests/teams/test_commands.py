"""Commands of people: the first admin, tokens from the shell, sealing for backups."""

import json
import time
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from portal.teams.models import ApiToken, AuditEvent, AuditSeal, User
from portal.teams.services import tokens, users
from tests.people import api_client, make_team, make_user

pytestmark = pytest.mark.django_db


def run(name: str, *words: str) -> str:
    out = StringIO()
    call_command(name, *words, stdout=out)
    return out.getvalue()


# The first admin ----------------------------------------------------------------------------------


def test_the_first_start_makes_one_admin_with_a_one_time_password():
    made = json.loads(run("bootstrap"))
    user = User.objects.get()
    assert made == {"created": True, "email": user.email, "password": made["password"]}
    assert user.check_password(made["password"])
    assert (user.site_role, user.must_change_password) == ("admin", True)
    assert json.loads(run("bootstrap")) == {"created": False, "email": None, "password": None}
    assert User.objects.count() == 1
    assert made["password"] not in str(list(AuditEvent.objects.values()))


def test_a_given_password_and_token_are_taken_as_given(settings):
    settings.BOOTSTRAP_ADMIN_EMAIL = "Root@Example.org"
    settings.BOOTSTRAP_ADMIN_PASSWORD = "a long enough passphrase"
    settings.BOOTSTRAP_TOKEN = "any-text-at-all"
    assert json.loads(run("bootstrap"))["password"] is None
    user = User.objects.get(email="root@example.org")
    assert (user.check_password("a long enough passphrase"), user.must_change_password) == (
        True,
        False,
    )
    client = api_client(None)
    client.credentials(HTTP_AUTHORIZATION="Bearer any-text-at-all")
    assert client.get("/api/v1/users").status_code == 200


# Tokens from the shell ----------------------------------------------------------------------------


def test_createtoken_prints_the_token_and_nothing_else():
    ada = make_user("ada")
    team = make_team("vision", bob="viewer")
    text = run("createtoken", "--user", "ADA@example.org", "--name", "ci", "--expires-days", "2")
    row = ApiToken.objects.get(digest=tokens.digest_of(text.removesuffix("\n")))
    assert (row.user, row.team, row.scopes) == (ada, None, ["read", "write"])
    assert row.expires_at is not None
    words = ("--user", "bob@example.org", "--name", "ci", "--team", "vision", "--scope", "read")
    row = ApiToken.objects.get(digest=tokens.digest_of(run("createtoken", *words).strip()))
    assert (row.team, row.scopes, row.expires_at) == (team, ["read"], None)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--user", "nobody@example.org", "--name", "x"), "There is no active person nobody@"),
        (("--user", "gone@example.org", "--name", "x"), "There is no active person gone@"),
        (("--user", "ada@example.org", "--name", " "), "/name: Give a name"),
        (("--user", "ada@example.org", "--name", "x", "--team", "vision"), "no such team"),
        (("--user", "ada@example.org", "--name", "x", "--expires-days", "0"), "1 to 3650 days"),
        (
            ("--user", "ada@example.org", "--name", "x", "--expires-days", "99999999"),
            "1 to 3650 days",
        ),
        (("--user", "ada@example.org", "--name", "x", "--scope", "root"), "invalid choice"),
    ],
)
def test_createtoken_refuses_in_one_sentence(words, sentence):
    make_user("ada")
    make_team("vision")
    gone = make_user("gone")
    User.objects.filter(pk=gone.pk).update(is_active=False)
    with pytest.raises(CommandError) as caught:
        run("createtoken", *words)
    assert sentence in str(caught.value)
    assert not ApiToken.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_seal_audit_seals_what_is_there():
    users.bootstrap()
    deadline = time.monotonic() + 20
    while not AuditSeal.objects.exists() and time.monotonic() < deadline:
        assert run("seal_audit").endswith("events sealed\n")  # none while older work goes on
    assert AuditSeal.objects.count() == AuditEvent.objects.count() == 1
