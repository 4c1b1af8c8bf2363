"""Speaking to mail servers, chats and webhooks; knows addresses and messages, no rows."""

import json
import smtplib
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import EmailMessage
from django.core.validators import validate_email
from standardwebhooks import Webhook

from portal.core import clock
from portal.core.crypto import Secret
from portal.core.errors import Refused, SlipwayError, Unavailable
from portal.core.http import Answer, Guard
from portal.notices.values import Failed, Kind, Message, Outcome, Sent

SEND_SECONDS = 10.0
MAX_ANSWER = 4096
LONGEST_ERROR = 300


def guard() -> Guard:
    """Return the guard of webhooks: private networks are never allowed."""
    return Guard(allow_private=settings.WEBHOOK_ALLOW_PRIVATE, own_listeners=settings.OWN_LISTENERS)


def check_target(kind: Kind, target: str) -> str:
    """Return what may be shown of the target. Raises `Refused` with the reason.

    A name that does not resolve now is taken: each delivery checks again.
    """
    if kind is Kind.MAIL:
        try:
            validate_email(target)
        except ValidationError as error:
            raise Refused("address_refused", "This is not an e-mail address.") from error
        return target
    with suppress(Unavailable):
        guard().check(target)
    address = urlsplit(target)
    rest = target.partition(address.netloc)[2].strip("/")
    return f"{address.netloc}/…{target[-4:]}"[:254] if rest else address.netloc[:254]


def send(kind: Kind, target: Secret, message: Message, *, signing: Secret | None) -> Outcome:
    """Send the message once. Everything that the other end does wrong is a `Failed`."""
    try:
        match kind:
            case Kind.MAIL:
                return _mail(target, message)
            case Kind.SLACK:
                return _judged(_slack(target, message))
            case Kind.WEBHOOK:
                return _judged(_webhook(target, message, signing=signing))
    except SlipwayError as error:
        return Failed(error=error.message[:LONGEST_ERROR])


def _mail(target: Secret, message: Message) -> Outcome:
    if not settings.HAS_MAIL:
        return Failed(error="There is no mail server; an admin names one by SLIPWAY_EMAIL_URL.")
    mail = EmailMessage(
        subject=f"[Slipway] {message.subject}",
        body=message.text,
        to=[target.reveal()],
        headers={"Message-ID": f"<{message.id}@{urlsplit(settings.PUBLIC_URL).hostname}>"},
    )
    try:
        mail.send()
    except (smtplib.SMTPException, OSError) as error:
        return Failed(error=f"The mail server did not take it: {error}"[:LONGEST_ERROR])
    return Sent()


def _slack(target: Secret, message: Message) -> Answer:
    return _post(target, json.dumps({"text": message.text}).encode(), {})


def _webhook(target: Secret, message: Message, *, signing: Secret | None) -> Answer:
    now = clock.now()
    headers = {"webhook-id": message.id, "webhook-timestamp": str(int(now.timestamp()))}
    if signing is not None:
        webhook = Webhook(signing.reveal())
        signature = webhook.sign(msg_id=message.id, timestamp=now, data=message.body.decode())
        headers["webhook-signature"] = signature
    return _post(target, message.body, headers)


def _post(target: Secret, body: bytes, headers: dict[str, str]) -> Answer:
    return guard().request(
        "POST",
        target.reveal(),
        headers={"Content-Type": "application/json", **headers},
        content=body,
        timeout=SEND_SECONDS,
        max_bytes=MAX_ANSWER,
    )


def _judged(answer: Answer) -> Outcome:
    if 200 <= answer.status < 300:
        return Sent()
    text = answer.body.decode(errors="replace").strip()
    return Failed(
        error=f"The receiver answered {answer.status}. {text}"[:LONGEST_ERROR].strip(),
        retry_after_seconds=_retry_after(answer.headers.get("retry-after", "")),
        is_gone=answer.status == 410,
    )


def _retry_after(text: str) -> float:
    """Return the seconds that the header asks for: a number or a date (RFC 9110, 10.2.3)."""
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return 0
    return max(0.0, (_aware(at) - clock.now()).total_seconds())


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)
