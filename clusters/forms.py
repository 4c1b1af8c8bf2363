"""Forms of clusters."""

from typing import Any

from django import forms

from portal.teams.models import Team


class ClusterForm(forms.Form):
    """Who may launch on a cluster."""

    name = forms.CharField(max_length=250)
    is_shared = forms.BooleanField(required=False, label="Every team may launch here")
    teams = forms.MultipleChoiceField(
        required=False,
        label="Or only these teams",
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, teams: list[Team], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["teams"].choices = [(t.slug, t.name) for t in teams]  # type: ignore[attr-defined] # a choice field
