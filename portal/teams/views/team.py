"""Pages of one team: people, secrets, quotas, events, settings."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.core.errors import NotFound
from portal.core.pages import act, attempt, both, numbered
from portal.teams import forms, selectors
from portal.teams.middleware import actor_of
from portal.teams.models import Membership, Team
from portal.teams.roles import Permission
from portal.teams.serializers import invitation_url
from portal.teams.services import members, secrets, teams, tokens


def team_page(
    request: HttpRequest,
    team: Team,
    here: str,
    *,
    status: int = 200,
    template: str = "",
    **context: Any,
) -> HttpResponse:
    """Render a tab of the team's page with what all of them share."""
    actor = actor_of(request)

    def may(permission: Permission) -> bool:
        return actor.can(permission, team_id=team.pk)

    shared = {
        "team": team,
        "team_role": selectors.role_in(actor, team),
        "here": here,
        "counts": selectors.counts_of(team),
        "may_edit": may(Permission.TEAM_EDIT),
        "may_edit_members": may(Permission.MEMBERS_EDIT),
        "may_edit_secrets": may(Permission.SECRETS_EDIT),
        "may_lower": may(Permission.LIMITS_LOWER),
        "may_raise": may(Permission.LIMITS_RAISE),
    }
    template = template or f"teams/{here}.html"
    return render(request, template, {**shared, **context}, status=status)


@login_required
@both
def people(request: HttpRequest, slug: str) -> HttpResponse:
    """Show members and open invitations; add a person."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    form = forms.MemberForm(request.POST or None)
    invited = None
    if request.method == "POST":
        added = attempt(form, lambda **values: members.add_member(actor, team, **values))
        if isinstance(added, Membership):
            messages.success(request, f"{added.user.email} is a member now.")
            return redirect("team", slug)
        if added is not None:
            invited = {"email": added.invitation.email, "url": invitation_url(added.token)}
            form = forms.MemberForm()
    return team_page(
        request,
        team,
        "people",
        status=422 if form.errors else 200,
        form=form,
        invited=invited,
        rows=numbered(request, selectors.members_for(actor, team)),
        invitations=selectors.invitations_for(actor, team),
        roles=forms.ROLE_WORDS,
    )


@login_required
@require_POST
def member_role(request: HttpRequest, slug: str, user: str) -> HttpResponse:
    """Give a member another role."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    role = request.POST.get("role", "")
    return act(
        request,
        lambda: members.change_role(actor, team, user_id=user, role=role),
        done="The role is changed.",
        to=reverse("team", args=[slug]),
    )


@login_required
@require_POST
def member_remove(request: HttpRequest, slug: str, user: str) -> HttpResponse:
    """Remove a member, or leave."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    leaving = user == actor.user_id and not actor.site_role
    return act(
        request,
        lambda: members.remove_member(actor, team, user_id=user),
        done="You left the team." if leaving else "The person is no longer a member.",
        to=reverse("dashboard") if leaving else reverse("team", args=[slug]),
    )


@login_required
@require_POST
def invitation_withdraw(request: HttpRequest, slug: str, invitation: str) -> HttpResponse:
    """Withdraw an invitation."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    return act(
        request,
        lambda: members.withdraw_invitation(actor, team, invitation_id=invitation),
        done="The invitation is withdrawn; its link no longer works.",
        to=reverse("team", args=[slug]),
    )


@login_required
@both
def team_secrets(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the names of secrets; add one."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    form = forms.SecretForm(request.POST or None)
    if request.method == "POST":
        made = attempt(form, lambda **values: secrets.create_secret(actor, team, **values))
        if made is not None:
            messages.success(request, f"The secret {made.name} is stored.")
            return redirect("team-secrets", slug)
    rows = numbered(request, selectors.secrets_for(actor, team))
    return team_page(
        request, team, "secrets", status=422 if form.errors else 200, form=form, rows=rows
    )


@login_required
@both
def secret_replace(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Give a secret another value."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    form = forms.SecretValueForm(request.POST or None)
    if request.method == "POST":
        done = attempt(
            form, lambda **values: secrets.replace_secret(actor, team, name=name, **values)
        )
        if done is not None:
            messages.success(request, f"{name} has another value now. Jobs that start get it.")
            return redirect("team-secrets", slug)
    secret = selectors.secret_for(actor, team, name)
    return team_page(
        request, team, "secret", status=422 if form.errors else 200, form=form, secret=secret
    )


@login_required
@require_POST
def secret_delete(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Delete a secret."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    return act(
        request,
        lambda: secrets.delete_secret(actor, team, name=name),
        done=f"The secret {name} is deleted.",
        to=reverse("team-secrets", args=[slug]),
    )


@login_required
def team_tokens(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the tokens that work only in this team."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    rows = numbered(request, selectors.team_tokens_for(actor, team))
    return team_page(request, team, "tokens", rows=rows)


@login_required
@require_POST
def token_revoke(request: HttpRequest, slug: str, token: str) -> HttpResponse:
    """Revoke a token of the team: an own one, or as a manager anybody's."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    row = selectors.team_tokens_for(actor, team).filter(pk=token).first()
    if row is None:
        raise NotFound("not_found", "There is no such token of this team.")
    return act(
        request,
        lambda: tokens.revoke_token(actor, row),
        done=f"The token {row.name} no longer works.",
        to=reverse("team-tokens", args=[slug]),
    )


@login_required
def events(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what happened in the team."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    rows = numbered(request, selectors.events_for(actor, team))
    return team_page(request, team, "events", rows=rows)


@login_required
@both
def settings(request: HttpRequest, slug: str) -> HttpResponse:
    """Change the team's name and time zone."""
    actor = actor_of(request)
    team = selectors.team_for(actor, slug)
    initial = {"name": team.name, "time_zone": team.time_zone}
    form = forms.TeamSettingsForm(request.POST or None, initial=initial)
    if request.method == "POST":
        done = attempt(form, lambda **values: teams.update_team(actor, team, **values))
        if done is not None:
            messages.success(request, "Saved.")
            return redirect("team-settings", slug)
    return team_page(request, team, "settings", status=422 if form.errors else 200, form=form)
