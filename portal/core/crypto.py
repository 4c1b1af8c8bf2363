"""Encryption of stored secrets: AES-256-GCM, bound to table, column and row, with key rotation.

A ciphertext is one version byte, four bytes that name the key, twelve of nonce, and what AES-GCM
returns. The header is authenticated together with the context.
"""

import hashlib
import hmac
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final, NoReturn

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from django.conf import settings
from django.db import models

from portal.core.errors import SlipwayError

VERSION: Final = b"\x01"
NONCE_BYTES: Final = 12
HEADER_BYTES: Final = 5
SHORTEST: Final = HEADER_BYTES + NONCE_BYTES + 16


class CannotEncrypt(SlipwayError):
    """No key is set, or it has the wrong length; the operator must set it."""


class CannotDecrypt(SlipwayError):
    """The key is unknown here, or the bytes are not what was stored for this row."""


class Secret:
    """A value that shows itself only when asked: masked in text, logs, templates and JSON."""

    __slots__ = ("_value",)
    MASK: ClassVar = "••••"

    def __init__(self, value: str | bytes) -> None:
        self._value = value.encode() if isinstance(value, str) else bytes(value)

    def reveal(self) -> str:
        """Return the value as text; call it where it leaves Slipway and nowhere earlier."""
        return self._value.decode()

    def reveal_bytes(self) -> bytes:
        """Return the value as bytes."""
        return self._value

    def __str__(self) -> str:
        return self.MASK

    def __repr__(self) -> str:
        return f"Secret({self.MASK})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value, other._value)

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not serialised; encrypt it")


def context(table: str, column: str, row_id: object) -> bytes:
    """Return the associated data that binds a ciphertext to its place."""
    return json.dumps([table, column, str(row_id)]).encode()


def encrypt(plaintext: str | bytes | Secret, *, context: bytes) -> bytes:
    """Encrypt with the first key for the place that `context` names. Raises `CannotEncrypt`."""
    secret = plaintext if isinstance(plaintext, Secret) else Secret(plaintext)
    key = _first_key()
    header = VERSION + _key_id(key)
    nonce = os.urandom(NONCE_BYTES)
    return header + nonce + AESGCM(key).encrypt(nonce, secret.reveal_bytes(), header + context)


def decrypt(ciphertext: bytes | memoryview, *, context: bytes) -> Secret:
    """Decrypt what `encrypt` made for the same place, by whichever key.

    Raises `CannotDecrypt` with code `encryption_key_missing` or `ciphertext_damaged`.
    """
    sealed = bytes(ciphertext)
    if len(sealed) < SHORTEST or sealed[:1] != VERSION:
        raise _damaged()
    header, nonce = sealed[:HEADER_BYTES], sealed[HEADER_BYTES:][:NONCE_BYTES]
    key = _keys().get(header[1:])
    if key is None:
        key_id = header[1:].hex()
        raise CannotDecrypt(
            "encryption_key_missing",
            f"The key with id {key_id} is not in SLIPWAY_ENCRYPTION_KEYS; add it after the first.",
            encryption_id=key_id,
        )
    try:
        plain = AESGCM(key).decrypt(nonce, sealed[HEADER_BYTES + NONCE_BYTES :], header + context)
    except InvalidTag as error:
        raise _damaged() from error
    return Secret(plain)


def needs_rotation(ciphertext: bytes | memoryview) -> bool:
    """Tell whether the ciphertext was made by another key than the first."""
    return bytes(ciphertext)[:HEADER_BYTES] != VERSION + _key_id(_first_key())


def rotate(ciphertext: bytes | memoryview, *, context: bytes) -> bytes:
    """Return the same secret encrypted by the first key."""
    return encrypt(decrypt(ciphertext, context=context), context=context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """An encrypted column of a model whose id is known before the row is written."""

    model: type[models.Model]
    name: str

    def context_of(self, row_id: object) -> bytes:
        """Return the associated data of this column in one row."""
        return context(self.model._meta.db_table, self.name, row_id)

    def seal(self, row_id: object, plaintext: str | bytes | Secret) -> bytes:
        """Encrypt a value for the row."""
        return encrypt(plaintext, context=self.context_of(row_id))

    def open(self, row: models.Model) -> Secret:
        """Decrypt the row's value. Raises `CannotDecrypt`."""
        return decrypt(getattr(row, self.name), context=self.context_of(row.pk))


columns: list[Column] = []
"""Every encrypted column there is; `rotate_keys` walks it."""


def column(model: type[models.Model], name: str) -> Column:
    """Register an encrypted column; rooms call it once, at the end of their models module."""
    made = Column(model=model, name=name)
    columns.append(made)
    return made


def _first_key() -> bytes:
    keys: list[Any] = list(settings.ENCRYPTION_KEYS)
    if not keys:
        raise CannotEncrypt(
            "encryption_key_missing",
            "SLIPWAY_ENCRYPTION_KEYS is not set; set it to 32 random bytes in base64url.",
        )
    return _checked(keys[0])


def _keys() -> dict[bytes, bytes]:
    return {_key_id(key): _checked(key) for key in settings.ENCRYPTION_KEYS}


def _checked(key: bytes) -> bytes:
    if len(key) != 32:
        raise CannotEncrypt(
            "encryption_key_wrong",
            f"A key in SLIPWAY_ENCRYPTION_KEYS has {len(key)} bytes; each must have 32.",
        )
    return key


@lru_cache(maxsize=64)
def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()[: HEADER_BYTES - 1]


def _damaged() -> CannotDecrypt:
    return CannotDecrypt(
        "ciphertext_damaged",
        "A stored secret cannot be read: its bytes were changed or belong to another row. "
        "Set the secret again.",
    )
