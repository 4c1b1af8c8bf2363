"""What mail must not do: carry links of strangers, claim an address, or pretend to be sent."""

import os
import subprocess
import sys

import pytest
from allauth.account.models import EmailAddress
from django.core import mail

from portal.core.crypto import Secret
from portal.notices import senders
from portal.notices.values import Failed, Kind, Message
from tests.people import browser, make_user

pytestmark = pytest.mark.django_db


def test_a_person_cannot_claim_the_address_of_another() -> None:
    mallory = make_user()
    for address in ("victim@example.com", make_user("root").email):
        browser(mallory).post("/account/email/", {"action_add": "", "email": address})
    assert list(EmailAddress.objects.filter(user=mallory).values_list("email", flat=True)) == [
        mallory.email
    ]
    assert mail.outbox == []


def test_asking_for_the_password_of_nobody_sends_no_mail_to_strangers() -> None:
    answer = browser(None).post("/account/password/reset/", {"email": "stranger@example.com"})
    assert answer.status_code == 302
    assert mail.outbox == []


def test_without_a_mail_server_a_mail_route_says_so(settings) -> None:
    settings.HAS_MAIL = False
    message = Message(id="1", subject="s", text="t", body=b"{}")
    outcome = senders.send(Kind.MAIL, Secret("ops@example.org"), message, signing=None)
    assert isinstance(outcome, Failed)
    assert "SLIPWAY_EMAIL_URL" in outcome.error


def test_without_a_mail_server_mail_is_not_written_to_the_log() -> None:
    """Links in it open accounts, and anybody can have one sent. Starts a process of its own."""
    environ = {k: v for k, v in os.environ.items() if k != "SLIPWAY_EMAIL_URL"}
    code = "from portal import settings; print(settings.EMAIL_BACKEND)"
    said = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert said.stdout.strip() == "django.core.mail.backends.dummy.EmailBackend"


def test_the_page_of_sessions_opens() -> None:
    assert browser(make_user()).get("/account/sessions/").status_code == 200
