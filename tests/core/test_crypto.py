"""Stored secrets: bound to their place, readable by every key, damaged by any change."""

import json
import pickle
from io import StringIO

import pytest
from django.apps.registry import Apps
from django.core.management import CommandError, call_command
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, models
from hypothesis import given
from hypothesis import strategies as st

from portal.core import crypto, ids

OLD, NEW = b"o" * 32, b"n" * 32
PLACE = crypto.context("routes", "target", "01J")


@pytest.fixture(autouse=True)
def _keys(settings):
    settings.ENCRYPTION_KEYS = [OLD]


@given(st.binary(max_size=5000), st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
def test_what_went_in_comes_out(plaintext, table, column, row_id):
    place = crypto.context(table, column, row_id)
    assert crypto.decrypt(crypto.encrypt(plaintext, context=place), context=place) == (
        crypto.Secret(plaintext)
    )


@given(st.text())
def test_text_comes_out_as_text(plaintext):
    assert crypto.decrypt(crypto.encrypt(plaintext, context=PLACE), context=PLACE).reveal() == (
        plaintext
    )


def test_the_same_text_never_looks_the_same():
    assert crypto.encrypt("s3cret", context=PLACE) != crypto.encrypt("s3cret", context=PLACE)
    assert b"s3cret" not in crypto.encrypt("s3cret", context=PLACE)


def test_a_change_of_any_byte_is_noticed():
    sealed = crypto.encrypt("s3cret", context=PLACE)
    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 1
        with pytest.raises(crypto.CannotDecrypt):
            crypto.decrypt(bytes(changed), context=PLACE)
    for length in range(len(sealed)):
        with pytest.raises(crypto.CannotDecrypt):
            crypto.decrypt(sealed[:length], context=PLACE)


@pytest.mark.parametrize(
    "other", [("routes", "target", "01K"), ("routes", "name", "01J"), ("secrets", "target", "01J")]
)
def test_a_ciphertext_is_worth_nothing_in_another_place(other):
    sealed = crypto.encrypt("s3cret", context=PLACE)
    with pytest.raises(crypto.CannotDecrypt) as raised:
        crypto.decrypt(sealed, context=crypto.context(*other))
    assert raised.value.code == "ciphertext_damaged"


@given(st.lists(st.text(), min_size=3, max_size=3), st.lists(st.text(), min_size=3, max_size=3))
def test_two_places_never_have_the_same_context(one, two):
    assert (crypto.context(*one) == crypto.context(*two)) == (one == two)


def test_rotation(settings):
    sealed = crypto.encrypt("s3cret", context=PLACE)
    assert not crypto.needs_rotation(sealed)
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert crypto.needs_rotation(sealed)
    assert crypto.decrypt(sealed, context=PLACE).reveal() == "s3cret"
    fresh = crypto.rotate(sealed, context=PLACE)
    settings.ENCRYPTION_KEYS = [NEW]
    assert not crypto.needs_rotation(fresh)
    assert crypto.decrypt(memoryview(fresh), context=PLACE).reveal() == "s3cret"
    with pytest.raises(crypto.CannotDecrypt, match="is not in SLIPWAY_ENCRYPTION_KEYS") as raised:
        crypto.decrypt(sealed, context=PLACE)
    assert raised.value.code == "encryption_key_missing"
    assert raised.value.facts["encryption_id"] in str(raised.value)


@pytest.mark.parametrize("keys", [[], [b"short"]])
def test_wrong_keys_are_said_so(settings, keys):
    settings.ENCRYPTION_KEYS = keys
    with pytest.raises(crypto.CannotEncrypt, match="SLIPWAY_ENCRYPTION_KEYS"):
        crypto.encrypt("s3cret", context=PLACE)


def test_a_secret_shows_itself_only_when_asked():
    secret = crypto.Secret("hunter2")
    for shown in (str(secret), repr(secret), f"{secret}", f"{secret!r}", "%s" % secret, [secret]):  # noqa: UP031
        assert "hunter2" not in str(shown)
    for fails in (json.dumps, pickle.dumps, DjangoJSONEncoder().encode):
        with pytest.raises(TypeError):
            fails({"value": secret})
    assert not hasattr(secret, "__dict__")
    assert secret == crypto.Secret(b"hunter2")
    assert secret != crypto.Secret("hunter3")
    assert secret != "hunter2"


class Row(models.Model):  # noqa: DJ008
    id = models.CharField(primary_key=True, max_length=26, default=ids.new)
    target = models.BinaryField(null=True)

    class Meta:
        app_label = "core"
        apps = Apps()
        db_table = "test_crypto_row"


@pytest.fixture
def column(db, monkeypatch):
    monkeypatch.setattr(crypto, "columns", [])
    with connection.schema_editor() as editor:
        editor.create_model(Row)
    return crypto.column(Row, "target")


def rotate_keys() -> str:
    out = StringIO()
    call_command("rotate_keys", stdout=out)
    return out.getvalue()


def test_rotate_keys_walks_every_registered_column(column, settings):
    rows = [Row(id=ids.new()) for _ in range(3)]
    for row in rows[:2]:
        row.target = column.seal(row.pk, f"value of {row.pk}")
    Row.objects.bulk_create(rows)
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    assert "test_crypto_row.target: 2 changed" in rotate_keys()
    assert "test_crypto_row.target: 0 changed" in rotate_keys()
    settings.ENCRYPTION_KEYS = [NEW]
    for row in Row.objects.exclude(target=None):
        assert column.open(row).reveal() == f"value of {row.pk}"


def test_rotate_keys_leaves_what_it_cannot_read_and_fails(column, settings):
    good, bad = ids.new(), ids.new()
    Row.objects.create(id=good, target=column.seal(good, "a"))
    stolen = column.seal(good, "b")
    Row.objects.create(id=bad, target=stolen)
    settings.ENCRYPTION_KEYS = [NEW, OLD]
    with pytest.raises(CommandError, match="1 values could not be read"):
        rotate_keys()
    assert bytes(Row.objects.get(id=bad).target) == stolen
    assert not crypto.needs_rotation(Row.objects.get(id=good).target)
