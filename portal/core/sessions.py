"""Browser sessions in the database, found by keys of the shape that they are made in."""

import string

from django.contrib.sessions.backends import db

_LETTERS = frozenset(string.ascii_lowercase + string.digits)


class SessionStore(db.SessionStore):
    """Django's sessions; a cookie of another shape is nobody's and never asks the database."""

    def _validate_session_key(self, key: str | None) -> bool:
        return key is not None and len(key) == 32 and _LETTERS.issuperset(key)
