"""Columns that Django does not bring."""

import json
from typing import Any

from django.db import models


class OrderedJSONField(models.JSONField):
    """JSON as it was written: PostgreSQL's `json`, whose keys keep their order (`jsonb` sorts)."""

    def db_type(self, connection: Any) -> str:
        """Return the column's type."""
        return "json"

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        """Return the value; psycopg has parsed `json` already."""
        return json.loads(value) if isinstance(value, str) else value
