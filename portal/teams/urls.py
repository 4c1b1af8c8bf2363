"""Paths of people and teams: pages, and REST below /api/v1."""

from django.urls import URLPattern, URLResolver, path

from portal.teams import api as rest
from portal.teams.views import account, site, team

pages: list[URLPattern | URLResolver] = [
    path("teams/<slug:slug>", team.people, name="team"),
    path("teams/<slug:slug>/members/<slug:user>/role", team.member_role, name="team-member-role"),
    path(
        "teams/<slug:slug>/members/<slug:user>/remove",
        team.member_remove,
        name="team-member-remove",
    ),
    path(
        "teams/<slug:slug>/invitations/<slug:invitation>/withdraw",
        team.invitation_withdraw,
        name="team-invitation-withdraw",
    ),
    path("teams/<slug:slug>/secrets", team.team_secrets, name="team-secrets"),
    path("teams/<slug:slug>/secrets/<str:name>", team.secret_replace, name="team-secret"),
    path(
        "teams/<slug:slug>/secrets/<str:name>/delete",
        team.secret_delete,
        name="team-secret-delete",
    ),
    path("teams/<slug:slug>/tokens", team.team_tokens, name="team-tokens"),
    path(
        "teams/<slug:slug>/tokens/<slug:token>/revoke",
        team.token_revoke,
        name="team-token-revoke",
    ),
    path("teams/<slug:slug>/events", team.events, name="team-events"),
    path("teams/<slug:slug>/settings", team.settings, name="team-settings"),
    path("me", account.me, name="me"),
    path("me/tokens/<slug:token>/revoke", account.token_revoke, name="me-token-revoke"),
    path("me/sessions/end", account.sessions_end, name="me-sessions-end"),
    path("invite/<str:token>", account.invite, name="invite"),
    path("admin/teams", site.admin_teams, name="admin-teams"),
    path("admin/teams/new", site.admin_team_new, name="admin-team-new"),
    path("admin/users", site.admin_users, name="admin-users"),
    path("admin/users/<slug:user>", site.admin_user, name="admin-user"),
    path("admin/audit", site.admin_audit, name="admin-audit"),
    path("admin/audit/export", site.audit_export, name="admin-audit-export"),
]
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
