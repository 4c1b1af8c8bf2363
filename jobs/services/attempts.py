"""Attempts of jobs: the token of the agent, and the secrets that it may take once."""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from django.db import transaction

from jobs import spec as specs
from jobs.models import ATTEMPT_TOKENS, Attempt, Job, LogCursor
from jobs.states import Phase
from portal.core import clock, ids
from portal.core.errors import Conflict, NotFound, Refused
from portal.teams.models import SECRET_VALUES, Secret

PREFIX: Final = "swa_"
FOLLOWED_SECONDS: Final = 15


@transaction.atomic
def token_of(job: Job) -> str:
    """Return the token of the job's attempt; the same each time until the job is submitted.

    The row lock makes two workers agree on one. It may write that job's log, and take its secrets.
    """
    LogCursor.objects.get_or_create(job=job)
    row_id, token = ids.new(), PREFIX + secrets.token_urlsafe(32)
    Attempt.objects.bulk_create(
        [
            Attempt(
                pk=row_id,
                job=job,
                number=job.attempt,
                token_hash=digest_of(token),
                token_sealed=ATTEMPT_TOKENS.seal(row_id, token),
            )
        ],
        ignore_conflicts=True,
    )
    attempt = Attempt.objects.get(job=job, number=job.attempt)
    if attempt.token_sealed is None:
        raise Conflict("submitted", "This attempt has been submitted already.")
    return ATTEMPT_TOKENS.open(attempt).reveal()


def forget_token(job: Job) -> None:
    """Keep the hash alone: the attempt is submitted, its agent has the token."""
    Attempt.objects.filter(job=job, number=job.attempt).update(token_sealed=None)


@transaction.atomic
def take_secrets(token_hash: str, *, nonce: str) -> dict[str, str]:
    """Return name in the environment → value, to one agent only; a nonce may ask again.

    Raises `NotFound` when the token is unknown or its job wants none, `Conflict` when another
    agent has them, `Refused` when a secret was deleted meanwhile or the job does not live.
    """
    attempt = (
        Attempt.objects.select_related("job__version")
        .select_for_update(no_key=True, of=("self",))
        .filter(token_hash=token_hash)
        .first()
    )
    spec = specs.parse(attempt.job.version.spec) if attempt else None
    if attempt is None or spec is None or not spec.secrets:
        raise NotFound("no_secrets", "There are no secrets for this token.")
    job = attempt.job
    if not Phase(job.phase).is_live or job.attempt != attempt.number:
        raise Refused("not_running", "Secrets are for jobs that live.")
    if attempt.secrets_nonce not in ("", nonce):
        raise Conflict("secrets_taken", "Another agent has taken the secrets of this attempt.")
    rows = Secret.objects.filter(team_id=job.team_id, name__in=set(spec.secrets.values()))
    values = {secret.name: SECRET_VALUES.open(secret).reveal() for secret in rows}
    missing = sorted(set(spec.secrets.values()) - values.keys())
    if missing:
        raise Refused("secret_missing", f"The team has no secret {', '.join(missing)} any more.")
    Attempt.objects.filter(pk=attempt.pk).update(secrets_nonce=nonce)
    return {variable: values[name] for variable, name in spec.secrets.items()}


def digest_of(token: str) -> str:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def note_followed(job_ids: Sequence[str]) -> None:
    """Note that somebody reads these logs along: their agents then post without waiting."""
    until = clock.now() + timedelta(seconds=FOLLOWED_SECONDS)
    LogCursor.objects.bulk_create(
        [LogCursor(job_id=job_id, followed_until=until) for job_id in job_ids],
        update_conflicts=True,
        unique_fields=["job"],
        update_fields=["followed_until"],
    )
