"""`Idempotency-Key`: one creation, one answer, for 24 hours."""

import threading
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, transaction

from portal.core import clock
from portal.teams import idempotency, reconcile
from portal.teams.models import ApiToken, IdempotencyRecord, Secret, Team
from portal.teams.services import tokens
from tests.people import api_client, make_world
from tests.threads import in_threads

pytestmark = pytest.mark.django_db
TEAMS = "/api/v1/teams"
BODY = {"slug": "robots", "name": "Robots"}


@pytest.fixture
def world(db):
    return make_world()


@pytest.fixture
def client(world):
    return api_client(world.people["admin"])


def post(client, path, body, key="k"):
    return client.post(path, body, format="json", headers={"Idempotency-Key": key})


def test_the_same_key_and_body_give_the_first_answer(client):
    first, second = post(client, TEAMS, BODY), post(client, TEAMS, BODY)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert Team.objects.filter(slug="robots").count() == 1


def test_the_order_of_members_makes_no_other_body(client):
    post(client, TEAMS, BODY)
    assert post(client, TEAMS, dict(reversed(BODY.items()))).status_code == 201


def test_another_body_under_the_same_key_is_a_conflict(client):
    post(client, TEAMS, BODY)
    answer = post(client, TEAMS, {**BODY, "slug": "other"})
    assert (answer.status_code, answer.json()["code"]) == (409, "idempotency_mismatch")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert not Team.objects.filter(slug="other").exists()


def test_a_key_belongs_to_one_person_and_path(client, world):
    post(client, TEAMS, BODY)
    manager = api_client(world.people["manager"])
    other = post(manager, "/api/v1/tokens", {"name": "x", "scopes": ["read"]})
    assert other.status_code == 201
    secrets = f"{TEAMS}/vision/secrets"
    assert post(client, secrets, {"name": "A", "value": "x"}).status_code == 201


@pytest.mark.parametrize("key", ["", "k" * 256, "schlüssel", "a\tb", " \x7f"])
def test_a_key_of_another_shape_is_refused(client, key):
    answer = post(client, TEAMS, BODY, key=key)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (400, "/Idempotency-Key")
    assert not Team.objects.filter(slug="robots").exists()


def test_an_error_of_the_request_is_kept_with_its_shape(client):
    first, second = (post(client, TEAMS, {"slug": "Robots", "name": "x"}) for _ in range(2))
    assert first.status_code == second.status_code == 400
    assert first.json() == second.json()
    assert second.headers["Content-Type"] == "application/problem+json"


def test_what_may_pass_is_never_kept(world):
    viewer = api_client(world.people["viewer"])
    path = f"{TEAMS}/vision/secrets"
    assert post(viewer, path, {"name": "A", "value": "x"}).status_code == 403
    assert not IdempotencyRecord.objects.exists()


def test_a_failure_of_ours_is_never_kept_and_changes_nothing(client):
    """The database itself refuses the audit record, so the creation fails half-way."""
    refuse = "CHECK (action <> 'team.created') NOT VALID"
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE teams_auditevent ADD CONSTRAINT no_teams {refuse}")
    answer = post(client, TEAMS, BODY)
    assert answer.status_code == 500
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert not Team.objects.filter(slug="robots").exists()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE teams_auditevent DROP CONSTRAINT no_teams")
    assert post(client, TEAMS, BODY).status_code == 201


def test_a_token_is_shown_once_and_not_kept(client):
    body = {"name": "ci", "scopes": ["read"]}
    first, second = (post(client, "/api/v1/tokens", body) for _ in range(2))
    text = first.json()["token"]
    assert tokens.digest_of(text) == ApiToken.objects.get(name="ci").digest
    assert "token" not in second.json()
    assert {**second.json(), "token": text} == first.json()
    assert text not in str(list(IdempotencyRecord.objects.values()))


def test_a_secret_in_the_body_is_not_kept(client):
    post(client, f"{TEAMS}/vision/secrets", {"name": "A", "value": "correct horse"})
    assert "correct horse" not in str(list(IdempotencyRecord.objects.values()))
    assert Secret.objects.get().name == "A"


def test_a_path_longer_than_any_of_ours_is_404_with_a_key_too(client):
    path = f"{TEAMS}/{'a' * 5000}/secrets"
    assert post(client, path, {"name": "A", "value": "x"}).status_code == 404


def test_after_a_day_the_key_is_free(client):
    post(client, TEAMS, BODY)
    IdempotencyRecord.objects.update(created_at=clock.now() - timedelta(hours=25))
    reconcile.expire()
    assert post(client, TEAMS, {"slug": "second", "name": "x"}).status_code == 201


# Twins --------------------------------------------------------------------------------------------


@contextmanager
def first_in_progress(user):
    """Hold the record of a creation that has begun and not ended, in another transaction."""
    written, go = threading.Event(), threading.Event()

    def run():
        try:
            with transaction.atomic():
                IdempotencyRecord.objects.create(
                    user=user, method="POST", path=TEAMS, key="k", body_hash="x"
                )
                written.set()
                go.wait(30)
                transaction.set_rollback(True)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert written.wait(10)
    try:
        yield
    finally:
        go.set()
        thread.join(10)


@pytest.mark.django_db(transaction=True)
def test_twins_at_once_make_one_thing_and_get_one_answer(client):
    answers = in_threads(4, lambda _: post(client, TEAMS, BODY))
    assert {answer.status_code for answer in answers} == {201}
    assert all(answer.json() == answers[0].json() for answer in answers)
    assert Team.objects.filter(slug="robots").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_twin_that_waits_too_long_is_told_so(client, world, monkeypatch):
    assert idempotency.WAIT_SECONDS == 5
    monkeypatch.setattr(idempotency, "WAIT_SECONDS", 0.1)
    with first_in_progress(world.people["admin"]):
        answer = post(client, TEAMS, BODY)
    assert (answer.status_code, answer.json()["code"]) == (409, "in_progress")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert post(client, TEAMS, BODY).status_code == 201
