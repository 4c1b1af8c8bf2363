"""What the OpenAPI document says about every route: names of lists, and errors as problems."""

from typing import Any

from drf_spectacular.openapi import AutoSchema

from portal.core.errors import PROBLEM
from portal.core.rest import LIMIT_PARAMETER

EVERYWHERE = {
    400: "The request is malformed; `errors` points at the fields.",
    401: "Nobody is signed in, or the token has ended.",
    403: "The person, or the token, may not do this.",
    404: "There is no such thing, or it is not the person's to see.",
    406: "Only JSON is spoken here.",
    429: "Asked too often; `Retry-After` says when to come back.",
    500: "A fault of Slipway's own; the log has it under the request's id.",
    503: "A part is away for a moment; `Retry-After` says when to come back.",
}
WRITING = {
    409: "The state of the thing, or an `Idempotency-Key` in use, forbids this now.",
    413: "The body is larger than 1 MiB.",
    415: "The body is not JSON.",
    422: "Understood and refused; `facts` say what would work.",
}
PROBLEM_SCHEMA = {
    "type": "object",
    "description": "An error (RFC 9457): `code` is for programs, `detail` for people.",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "facts": {"type": "object", "additionalProperties": True},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "pointer": {"type": "string", "description": "JSON pointer (RFC 6901)"},
                    "message": {"type": "string"},
                },
                "required": ["pointer", "message"],
            },
        },
    },
    "required": ["type", "title", "status", "detail", "code", "facts", "request_id"],
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "1 to 255 printable ASCII; the same key and body give the first answer for 24 h",
    "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
}


class NamedSchema(AutoSchema):
    """Names the reading of a list `…_list`, though our views are no viewsets."""

    def get_operation_id(self) -> str:
        """Return the operation's name."""
        name: str = super().get_operation_id()
        is_list = LIMIT_PARAMETER in self.get_override_parameters()
        return name.replace("_retrieve", "_list") if is_list else name


def declare_errors(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add to every operation the problems that it may answer with (a hook of drf-spectacular)."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = PROBLEM_SCHEMA
    components["responses"] = {
        f"Problem{status}": _response(text) for status, text in (EVERYWHERE | WRITING).items()
    }
    for operations in result["paths"].values():
        for method, operation in operations.items():
            statuses = EVERYWHERE if method == "get" else EVERYWHERE | WRITING
            for status in sorted(statuses):
                reference = {"$ref": f"#/components/responses/Problem{status}"}
                operation["responses"].setdefault(str(status), reference)
            if method == "post" and "201" in operation["responses"]:
                operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
    return result


def _response(text: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": text, "content": {PROBLEM: {"schema": schema}}}
