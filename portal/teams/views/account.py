"""The own account, and joining by an invitation's link."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from portal.core.errors import NotFound
from portal.core.pages import act, attempt, both, error_page
from portal.teams import forms, selectors
from portal.teams.middleware import actor_of
from portal.teams.models import User
from portal.teams.services import members, tokens, users

BACKEND = "allauth.account.auth_backends.AuthenticationBackend"


@login_required
@both
def me(request: HttpRequest) -> HttpResponse:
    """Show the account: name, ways to sign in, tokens, sessions; make a token or save the name."""
    actor = actor_of(request)
    mine = list(selectors.teams_for(actor).order_by("name")[:200])
    saves_name = request.POST.get("form") == "profile"
    makes_token = request.method == "POST" and not saves_name
    profile = forms.ProfileForm(request.POST if saves_name else None, initial={"name": actor.name})
    initial = {"team": request.GET.get("team", "")}
    form = forms.TokenForm(request.POST if makes_token else None, teams=mine, initial=initial)
    minted = None
    saved = attempt(profile, lambda **v: users.update_profile(actor, **v)) if saves_name else None
    if saved is not None:
        messages.success(request, "Saved.")
        return redirect("me")
    if makes_token:

        def mint(*, team: str, **values: object) -> tokens.Minted:
            bound = selectors.team_for(actor, team) if team else None
            return tokens.create_token(actor, team=bound, **values)  # type: ignore[arg-type] # cleaned by the form

        minted = attempt(form, mint)
        if minted is not None:
            form = forms.TokenForm(None, teams=mine)
    context = {
        "here": "me",
        "factors": settings.MFA_FACTORS,
        "profile": profile,
        "form": form,
        "minted": minted,
        "tokens": selectors.tokens_for(actor)[:200],
        "sessions": selectors.sessions_of(actor),
        "this_session": request.session.session_key,
    }
    wrong = form.errors or profile.errors
    response = render(request, "teams/me.html", context, status=422 if wrong else 200)
    if minted is not None:
        response["Cache-Control"] = "no-store"
    return response


@login_required
@require_POST
def token_revoke(request: HttpRequest, token: str) -> HttpResponse:
    """Revoke one of the own tokens."""
    actor = actor_of(request)
    row = selectors.tokens_for(actor).filter(pk=token).first()
    if row is None:
        raise NotFound("not_found", "There is no such token of yours.")
    return act(
        request,
        lambda: tokens.revoke_token(actor, row),
        done=f"The token {row.name} no longer works.",
        to=reverse("me"),
    )


@login_required
@require_POST
def sessions_end(request: HttpRequest) -> HttpResponse:
    """Sign out everywhere else."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101 - login_required
    ended = users.end_sessions(user, except_key=request.session.session_key)
    messages.success(
        request, f"{ended} other sessions ended." if ended != 1 else "1 other session ended."
    )
    return redirect("me")


@both
def invite(request: HttpRequest, token: str) -> HttpResponse:
    """Join a team by a link: as who is signed in, or with a new account."""
    try:
        invitation = members.find_invitation(token)
    except NotFound as error:
        return error_page(
            request, status=404, title="This link does not work", detail=error.message
        )
    user = request.user if isinstance(request.user, User) else None
    has_account = selectors.has_account(invitation.email)
    form = forms.JoinForm(request.POST or None)
    if request.method == "POST":
        if user is not None:
            joined = members.accept_invitation(token, user=user)
        else:
            made = attempt(form, lambda **v: members.accept_invitation(token, **v))
            if made is not None:
                login(request, made, backend=BACKEND)
            joined = made  # type: ignore[assignment] # None keeps the form
        if joined is not None:
            messages.success(request, f"Welcome to {invitation.team.name}.")
            return redirect("team", invitation.team.slug)
    context = {"invitation": invitation, "form": form, "has_account": has_account}
    return render(request, "teams/invite.html", context, status=422 if form.errors else 200)
