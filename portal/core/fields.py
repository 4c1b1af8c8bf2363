"""Columns that Django does not bring."""

import json
from typing import Any

from django.db import models
from psycopg.types.json import Json

from portal.core import ids


def id_field() -> "models.CharField[str, str]":
    """Return a primary key that is a fresh ULID."""
    return models.CharField(
        primary_key=True, max_length=ids.LENGTH, default=ids.new, editable=False
    )


class OrderedJSONField(models.JSONField):
    """JSON as it was written: PostgreSQL's `json`, whose keys keep their order (`jsonb` sorts)."""

    def db_type(self, connection: Any) -> str:
        """Return the column's type."""
        return "json"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:  # noqa: FBT001, FBT002 - Django's
        """Return what psycopg sends as `json`; Django's own way goes through `jsonb`."""
        return None if value is None else Json(value)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the value; psycopg has parsed `json` already."""
        return json.loads(value) if isinstance(value, str) else value
