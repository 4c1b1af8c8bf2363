"""Forms of people and teams; the rules behind them live in the services."""

import re
from datetime import timedelta
from typing import Any
from zoneinfo import available_timezones

from django import forms

from portal.core import clock
from portal.teams.models import Limit, Team
from portal.teams.roles import Role, Scope

ROLE_WORDS = [
    (Role.VIEWER, "Viewer: sees"),
    (Role.MEMBER, "Member: also launches"),
    (Role.MANAGER, "Manager: also people, secrets, quotas"),
]
SCOPE_WORDS = [
    (Scope.READ, "read: see"),
    (Scope.WRITE, "write: also change"),
    (Scope.ADMIN, "admin: also the site"),
]
EXPIRES = [("30", "In 30 days"), ("90", "In 90 days"), ("365", "In a year"), ("", "Never")]


def _zones() -> list[tuple[str, str]]:
    names = sorted(z for z in available_timezones() if "/" in z and not z.startswith("Etc/"))
    return [("UTC", "UTC"), *((z, z.replace("_", " ")) for z in names)]


class TeamForm(forms.Form):
    """A new team."""

    name = forms.CharField(max_length=250, help_text="As people say it.")
    slug = forms.CharField(
        max_length=40,
        label="Name in addresses",
        help_text="Lower-case letters, digits and hyphens. It stays.",
    )
    time_zone = forms.ChoiceField(
        choices=_zones, help_text="Months of quotas and budgets, and quiet hours, follow it."
    )
    join = forms.BooleanField(required=False, initial=True, label="Make me its first manager")


class TeamSettingsForm(forms.Form):
    """Changes of a team."""

    name = forms.CharField(max_length=250)
    time_zone = forms.ChoiceField(choices=_zones)


class MemberForm(forms.Form):
    """A person to add."""

    email = forms.CharField(
        max_length=400,
        label="E-mail",
        help_text="Somebody with an account joins at once; anybody else gets a link.",
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(choices=ROLE_WORDS, initial=Role.MEMBER)


class SecretForm(forms.Form):
    """A new secret."""

    name = forms.CharField(max_length=100, help_text="Such as HF_TOKEN. Definitions refer to it.")
    value = forms.CharField(
        max_length=65536,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
        help_text="Encrypted at once. Nobody can read it back, so keep your own copy.",
    )


class SecretValueForm(forms.Form):
    """A secret's new value."""

    value = SecretForm.base_fields["value"]


class TokenForm(forms.Form):
    """A new API token."""

    name = forms.CharField(max_length=100, help_text="Where it will be used, such as “CI”.")
    scopes = forms.MultipleChoiceField(
        choices=SCOPE_WORDS,
        initial=[Scope.READ, Scope.WRITE],
        widget=forms.CheckboxSelectMultiple,
        label="May",
    )
    team = forms.ChoiceField(
        required=False, label="Only in", help_text="A token never does more than you may."
    )
    expires = forms.ChoiceField(choices=EXPIRES, required=False, initial="90", label="Ends")

    def __init__(self, *args: Any, teams: list[Team], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [("", "all my teams"), *((team.slug, team.name) for team in teams)]
        self.fields["team"].choices = choices  # type: ignore[attr-defined] # a ChoiceField

    def clean(self) -> dict[str, Any]:
        """Turn the chosen span into an instant."""
        cleaned = super().clean() or {}
        days = cleaned.pop("expires", "")
        cleaned["expires_at"] = clock.now() + timedelta(days=int(days)) if days else None
        return cleaned


class LimitForm(forms.Form):
    """What a team may use; an empty field is no limit."""

    gpus = forms.IntegerField(required=False, min_value=0, label="GPUs at once")
    gpus_by_type = forms.CharField(
        required=False,
        label="GPUs by type",
        help_text="One a line, such as h100: 8. A type that is missing has no limit of its own.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    nodes = forms.IntegerField(required=False, min_value=0, label="Nodes at once")
    running_jobs = forms.IntegerField(
        required=False, min_value=0, label="Running jobs", help_text="0 pauses the team."
    )
    gpu_hours_per_month = forms.DecimalField(
        required=False, min_value=0, label="GPU-hours a month", max_digits=14, decimal_places=4
    )

    @classmethod
    def initial_of(cls, limit: Limit) -> dict[str, Any]:
        """Return the values that the form begins with."""
        types = "\n".join(f"{name}: {count}" for name, count in sorted(limit.gpus_by_type.items()))
        return {
            "gpus": limit.gpus,
            "gpus_by_type": types,
            "nodes": limit.nodes,
            "running_jobs": limit.running_jobs,
            "gpu_hours_per_month": limit.gpu_hours_per_month
            and f"{limit.gpu_hours_per_month.normalize():f}",
        }

    def clean_gpus_by_type(self) -> dict[str, int]:
        """Read one type and count a line."""
        types: dict[str, int] = {}
        for line in self.cleaned_data["gpus_by_type"].splitlines():
            name, colon, count = line.partition(":")
            if not line.strip():
                continue
            if not colon or not re.fullmatch(r"\s*[0-9]{1,9}\s*", count):
                raise forms.ValidationError(f"“{line[:40]}” is not a type and a count: h100: 8.")
            types[name.strip().lower()] = int(count)
        return types


class ProfileForm(forms.Form):
    """The own name."""

    name = forms.CharField(max_length=250, required=False, help_text="What others see.")


class JoinForm(forms.Form):
    """A new account from an invitation."""

    name = forms.CharField(max_length=250, required=False, label="Your name")
    password = forms.CharField(
        max_length=1024,
        strip=False,
        help_text="At least 12 characters. Three or four words are good.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
