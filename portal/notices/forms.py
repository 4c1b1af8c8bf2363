"""Forms of notices; the rules behind them live in the services."""

from typing import Any

from django import forms

from portal.notices.models import Route
from portal.notices.values import Kind, LevelName

KINDS = [
    (Kind.MAIL, "Mail"),
    (Kind.SLACK, "Slack or Mattermost"),
    (Kind.WEBHOOK, "Webhook, signed"),
]
LEVELS = [
    (LevelName.INFO, "Everything worth knowing"),
    (LevelName.WARN, "Warnings and worse"),
    (LevelName.BAD, "Only what is bad"),
]


class RouteForm(forms.Form):
    """A way to people; `target` may stay empty when a route is changed."""

    name = forms.CharField(max_length=100, help_text="Such as “On-call channel”.")
    kind = forms.ChoiceField(choices=KINDS, widget=forms.RadioSelect, initial=Kind.MAIL)
    target = forms.CharField(
        max_length=2000,
        label="Address",
        help_text="An e-mail address, or an https address of the chat or webhook.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    min_level = forms.ChoiceField(choices=LEVELS, initial=LevelName.WARN, label="Hears of")
    quiet_from = forms.TimeField(
        required=False,
        label="Quiet from",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )
    quiet_until = forms.TimeField(
        required=False,
        label="until",
        help_text="In the team's time zone. Only what is bad still comes.",
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )

    def clean(self) -> dict[str, Any]:
        """Quiet hours have both ends or none."""
        cleaned = super().clean() or {}
        if bool(cleaned.get("quiet_from")) != bool(cleaned.get("quiet_until")):
            missing = "quiet_until" if cleaned.get("quiet_from") else "quiet_from"
            self.add_error(missing, "Give both ends of the quiet hours, or neither.")
        return cleaned


class RouteChangeForm(RouteForm):
    """Changes of a route; its kind stays, an empty address keeps the old one."""

    kind = None  # type: ignore[assignment] # Django's way to leave a field out
    is_enabled = forms.BooleanField(required=False, label="Enabled")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["target"].required = False
        self.fields["target"].help_text = "Leave it empty to keep the address as it is."

    @classmethod
    def initial_of(cls, route: Route) -> dict[str, Any]:
        """Return the values that the form begins with."""
        names = ("name", "min_level", "quiet_from", "quiet_until", "is_enabled")
        return {name: getattr(route, name) for name in names}

    def clean(self) -> dict[str, Any]:
        """Drop an empty address."""
        cleaned = super().clean()
        if not cleaned.get("target"):
            cleaned.pop("target", None)
        return cleaned
