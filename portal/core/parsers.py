"""A JSON parser that lets nothing in that PostgreSQL cannot store."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from rest_framework import exceptions, parsers, status

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class StrictJSONParser(parsers.JSONParser):
    """JSON that PostgreSQL can store: valid UTF-8, no NUL, no half characters, no NaN."""

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the parsed body; raise 400 with the reason, or 413 above the limit."""
        raw = stream.read()
        if len(raw) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            raise TooLarge
        try:
            value = json.loads(raw.decode(), parse_constant=_no_constant, parse_float=_finite)
            if b"\\u" in raw and (b"\\u0000" in raw or _SURROGATE.search(raw)):
                text = json.dumps(value, ensure_ascii=False)
                text.encode()
                if "\\u0000" in text:
                    raise ValueError("it has a NUL character")
        except (ValueError, RecursionError) as error:
            detail = f"The body is not valid JSON: {error}."
            raise exceptions.ParseError(detail, code="bad_json") from error
        return value


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class TooLarge(exceptions.APIException):
    """The body is above the limit."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = "The body is larger than 1 MiB. Send less at once."
    default_code = "too_large"
