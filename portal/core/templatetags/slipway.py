"""The small parts that pages are made of; what they look like is in static/css/slipway.css."""

from datetime import datetime
from functools import lru_cache
from typing import Any

from django import template
from django.forms import BoundField, CheckboxInput, CheckboxSelectMultiple, RadioSelect
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from portal.core import clock

register = template.Library()
_TONES = ("run", "ok", "wait", "warn")


@register.simple_tag
@lru_cache(maxsize=256)
def icon(name: str) -> SafeString:
    """Draw an icon of the sprite; it has no words, so the text beside it must say it all."""
    return format_html(
        '<svg class="i" aria-hidden="true"><use href="{}#{}"/></svg>', static("icons.svg"), name
    )


@register.filter
def ago(instant: datetime | None) -> SafeString | str:
    """Write an instant as words; the browser adds the exact time in the reader's zone."""
    if instant is None:
        return "–"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        instant.isoformat(timespec="seconds"),
        instant.strftime("%-d %b %Y, %H:%M:%S UTC"),
        _relative((clock.now() - instant).total_seconds(), instant),
    )


def _relative(seconds: float, instant: datetime) -> str:
    size = abs(seconds)
    if size < 45:
        return "just now" if seconds >= 0 else "in a moment"
    if size >= 14 * 86400:
        return instant.strftime("%-d %b" if size < 300 * 86400 else "%-d %b %Y")
    for unit, word in ((86400, "d"), (3600, "h"), (60, "min")):
        if size >= unit or unit == 60:
            count = max(1, int(size // unit if seconds >= 0 else -(-size // unit)))
            return f"{count} {word} ago" if seconds >= 0 else f"in {count} {word}"
    raise AssertionError("minutes fit everything")


@register.simple_tag
def avatar(name: str, square: bool = False) -> SafeString:  # noqa: FBT001, FBT002 - as templates call
    """Draw the initials of a person, or of a team as a square."""
    words = [word for word in name.replace("@", " ").replace(".", " ").split() if word[0].isalnum()]
    letters = "".join(word[0] for word in words[:2]).upper() or "·"
    return format_html(
        '<span class="avatar{}" data-tone="{}" aria-hidden="true">{}</span>',
        " sq" if square else "",
        _TONES[sum(name.encode()) % len(_TONES)],
        letters,
    )


@register.simple_tag
def field(bound: BoundField, **attributes: Any) -> SafeString:
    """Render a form's field with label, hint and error, tied together for screen readers."""
    widget = bound.field.widget
    kind = "text"
    if isinstance(widget, CheckboxSelectMultiple | RadioSelect):
        kind = "choices"
    elif isinstance(widget, CheckboxInput):
        kind = "check"
    described = [f"{bound.auto_id}-hint"] if bound.help_text else []
    if bound.errors:
        described.insert(0, f"{bound.auto_id}-error")
        attributes["aria-invalid"] = "true"
    if described:
        attributes["aria-describedby"] = " ".join(described)
    if kind == "text":
        attributes["class"] = f"input {attributes.pop('class', '')}".strip()
    context = {"field": bound, "kind": kind, "widget": bound.as_widget(attrs=attributes)}
    return render_to_string("parts/field.html", context)


_SENTENCES = {
    "team.created": "created the team",
    "team.changed": "changed the team",
    "member.added": "added",
    "member.invited": "invited",
    "member.uninvited": "withdrew an invitation",
    "member.joined": "joined by a link",
    "member.role_changed": "changed the role of",
    "member.removed": "removed",
    "member.left": "left the team",
    "quota.changed": "changed the quotas",
    "token.created": "made the token",
    "token.revoked": "revoked the token",
    "secret.created": "stored the secret",
    "secret.replaced": "replaced the secret",
    "secret.deleted": "deleted the secret",
    "notice.changed": "raised or ended a notice",
    "cluster.changed": "changed the cluster",
    "definition.created": "wrote the definition",
    "definition.changed": "saved a version of",
    "definition.deleted": "took out of use the definition",
    "job.submitted": "launched",
    "job.stopped": "stopped",
    "route.created": "made the notice route",
    "route.changed": "changed the notice route",
    "route.deleted": "deleted the notice route",
    "route.disabled": "disabled the notice route",
    "delivery.replayed": "sent once more along the notice route",
    "user.site_role_changed": "changed the site role of",
    "user.deactivated": "deactivated",
    "user.reactivated": "reactivated",
}


@register.filter
def sentence(action: str) -> str:
    """Write an event's action as what its actor did."""
    return _SENTENCES.get(action) or words(action).lower()


@register.filter
def fact(value: Any) -> str:
    """Write one fact of an event for people."""
    match value:
        case {"was": was, "is": now}:
            return f"{fact(was)} → {fact(now)}"
        case dict():
            return ", ".join(f"{key} {fact(part)}" for key, part in value.items()) or "none"
        case list():
            return ", ".join(fact(part) for part in value)
        case None:
            return "no limit"
        case _:
            return str(value)


@register.filter
def prefixed(state: str) -> str:
    """Return the name of a state's icon."""
    return f"s-{state}"


@register.filter
def words(code: str) -> str:
    """Write a code such as `member.role_changed` for people."""
    return code.replace(".", " ").replace("_", " ").capitalize()
