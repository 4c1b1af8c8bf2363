"""Paths of people and teams: pages, and REST below /api/v1."""

from django.urls import URLPattern, URLResolver, path

from portal.teams import api as rest

pages: list[URLPattern | URLResolver] = []
api: list[URLPattern | URLResolver] = [
    path("me", rest.Me.as_view(), name="api-me"),
    path("teams", rest.Teams.as_view(), name="api-teams"),
    path("teams/<slug:slug>", rest.OneTeam.as_view(), name="api-team"),
    path("teams/<slug:slug>/members", rest.Members.as_view(), name="api-members"),
    path("teams/<slug:slug>/members/<slug:user>", rest.OneMember.as_view(), name="api-member"),
    path("teams/<slug:slug>/invitations", rest.Invitations.as_view(), name="api-invitations"),
    path(
        "teams/<slug:slug>/invitations/<slug:invitation>",
        rest.OneInvitation.as_view(),
        name="api-invitation",
    ),
    path("teams/<slug:slug>/secrets", rest.Secrets.as_view(), name="api-secrets"),
    path("teams/<slug:slug>/secrets/<str:name>", rest.OneSecret.as_view(), name="api-secret"),
    path("teams/<slug:slug>/events", rest.Events.as_view(), name="api-events"),
    path("tokens", rest.Tokens.as_view(), name="api-tokens"),
    path("tokens/<slug:token>", rest.OneToken.as_view(), name="api-token"),
    path("users", rest.Users.as_view(), name="api-users"),
    path("users/<slug:user>", rest.OneUser.as_view(), name="api-user"),
    path("audit", rest.Audit.as_view(), name="api-audit"),
]
