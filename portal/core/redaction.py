"""What looks like a secret, and its mask. Pure; standard library only.

Two nets: names of fields (`password`, `api_token` …), and shapes of values wherever they stand in
a text (`slw_…`, `Bearer …`, keys of AWS, passwords inside addresses, private keys …).
"""

import re
from collections.abc import Mapping
from typing import Any

MASK = "••••"
MAX_DEPTH = 8
MAX_TEXT = 20_000

_NAMES = (
    "password", "passwd", "passphrase", "secret", "token", "authorization", "cookie",
    "credential", "privatekey", "apikey", "accesskey", "sessionkey", "sessionid", "jwt",
)  # fmt: skip
_HARMLESS_ENDS = ("id", "ids", "prefix", "name", "names", "count", "at", "seconds", "bytes", "type")
_HARMLESS_KEYS = ("routingkey", "idempotencykey")
_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
_NAMED = r"(?:[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|api_?-?key|access_?-?key|cookie)\w*)"

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|\Z)", MASK),
        (r"(?i)\b(authorization\W{1,4}(?:\w+\s+)?|bearer\s+)[\w.~+/=:-]{6,}", rf"\1{MASK}"),
        (r"\b([Bb]asic\s+)(?=[A-Za-z+/]*[0-9=])[A-Za-z0-9+/=]{6,}", rf"\1{MASK}"),
        (r"(?i)\b([a-z][a-z0-9+.-]*://)[^/\s@'\"]*@", rf"\1{MASK}@"),
        (r"\b(slw|whsec|xox[a-z]|gh[pousr]|glpat|sk|hf)([_-])[\w+/=-]{6,}", rf"\1\2{MASK}"),
        (r"\b(AKIA|ASIA)[A-Z0-9]{12,}", rf"\1{MASK}"),
        (r"\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?", MASK),
        (r"(/(?:invite|reset/key|confirm-email)/)[^\s/\"'?]+", rf"\1{MASK}"),
        (r"(hooks\.slack\.com/(?:services|workflows)/)[\w/-]+", rf"\1{MASK}"),
        (rf"(?i)(\b{_NAMED}[\"']?\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s\"',;&}}\])]+)", rf"\1{MASK}"),
    )
)  # fmt: skip


def is_secret_name(name: str) -> bool:
    """Tell whether a field of this name holds a secret; `token_id` and the like do not."""
    plain = _NOT_LETTERS.sub("", name.lower())
    if plain in _HARMLESS_KEYS:
        return False
    if plain == "key" or plain.endswith(("key", "keys")):
        return True
    if name.lower().replace("-", "_").rsplit("_", 1)[-1] in _HARMLESS_ENDS:
        return False
    return any(word in plain for word in _NAMES)


def redact_text(text: str) -> str:
    """Return the text with everything masked that has the shape of a secret."""
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT]}… ({len(text) - MAX_TEXT} characters more)"
    for pattern, replacement in _SHAPES:
        text = pattern.sub(replacement, text)
    return text


def redact(value: Any, *, name: str = "", depth: int = 0) -> Any:
    """Return plain values only: numbers, texts, lists and mappings, with secrets masked."""
    if value is None or isinstance(value, bool):
        return value
    if name and is_secret_name(name):
        return MASK
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return redact_text(value)
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return {
            redact_text(str(k)): redact(v, name=str(k), depth=depth + 1) for k, v in value.items()
        }
    if depth < MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        return [redact(item, depth=depth + 1) for item in value]
    return redact_text(_as_text(value))


def _as_text(value: Any) -> str:
    try:
        return repr(value) if isinstance(value, bytes) else str(value)
    except Exception:  # a log line never fails because a fact cannot speak
        return f"<{type(value).__name__}>"
