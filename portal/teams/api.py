"""REST of people, teams, tokens, secrets, events and the audit log."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from portal.core.errors import NotFound
from portal.core.rest import NOTHING, PAGED, ApiView, page_of
from portal.teams import filters, selectors
from portal.teams import serializers as shapes
from portal.teams.idempotency import idempotent
from portal.teams.models import Membership, Team, User
from portal.teams.services import members, secrets, teams, tokens, users


class TeamView(ApiView):
    """A view below one team."""

    def team(self) -> Team:
        """Return the team of the path, or raise `NotFound`."""
        return selectors.team_for(self.actor, self.kwargs["slug"])


class Me(ApiView):
    """Who asks."""

    @extend_schema(responses=shapes.MeSerializer)
    def get(self, request: Request) -> Response:
        """Return the person, roles and token of this request."""
        return self._shown(request.user)

    @extend_schema(request=shapes.ProfileInput, responses=shapes.MeSerializer)
    def patch(self, request: Request) -> Response:
        """Change the own name."""
        return self._shown(users.update_profile(self.actor, **self.valid(shapes.ProfileInput)))

    def _shown(self, user: Any) -> Response:
        actor = self.actor
        bound = actor.bound_team_id
        slugs = [(pk, slug) for pk, slug in actor.slugs.items() if bound in (None, pk)]
        token = {"id": actor.token_id, "prefix": actor.token_prefix}
        if actor.scopes is not None:
            token["scopes"] = sorted(actor.scopes)
        return Response(
            {
                "id": user.pk,
                "email": user.email,
                "name": user.name,
                "site_role": str(actor.site_role),
                "teams": {slug: str(actor.roles[pk]) for pk, slug in slugs},
                "token": token if actor.token_id else None,
            }
        )


class Teams(ApiView):
    """All teams that the actor may see."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.TeamSerializer))
    def get(self, request: Request) -> Response:
        """List teams, newest first."""
        return self.page(selectors.teams_for(self.actor), shapes.TeamSerializer)

    @extend_schema(request=shapes.TeamInput, responses={201: shapes.TeamSerializer})
    @idempotent()
    def post(self, request: Request) -> Response:
        """Create a team; site admins only."""
        team = teams.create_team(self.actor, **self.valid(shapes.TeamInput))
        shown = shapes.TeamSerializer(team, context={"request": request})
        return Response(shown.data, status=status.HTTP_201_CREATED)


class OneTeam(TeamView):
    """One team."""

    @extend_schema(responses=shapes.TeamSerializer)
    def get(self, request: Request, slug: str) -> Response:
        """Return a team."""
        return Response(shapes.TeamSerializer(self.team(), context={"request": request}).data)

    @extend_schema(request=shapes.TeamPatch, responses=shapes.TeamSerializer)
    def patch(self, request: Request, slug: str) -> Response:
        """Change a team's name or time zone."""
        team = teams.update_team(self.actor, self.team(), **self.valid(shapes.TeamPatch))
        return Response(shapes.TeamSerializer(team, context={"request": request}).data)


class Members(TeamView):
    """Members of a team."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.MemberSerializer))
    def get(self, request: Request, slug: str) -> Response:
        """List members, by e-mail."""
        rows = selectors.members_for(self.actor, self.team())
        return self.page(rows, shapes.MemberSerializer, order="user__email")

    @extend_schema(request=shapes.MemberInput, responses={201: shapes.AddedSerializer})
    @idempotent(secret=["url"])
    def post(self, request: Request, slug: str) -> Response:
        """Add a known person, or invite an unknown one by a link that is shown once."""
        added = members.add_member(self.actor, self.team(), **self.valid(shapes.MemberInput))
        body: dict[str, Any]
        if isinstance(added, Membership):
            body = {"member": added, "invitation": None, "url": None}
        else:
            url = shapes.invitation_url(added.token)
            body = {"member": None, "invitation": added.invitation, "url": url}
        return Response(shapes.AddedSerializer(body).data, status=status.HTTP_201_CREATED)


class OneMember(TeamView):
    """One member of a team."""

    @extend_schema(request=shapes.RoleInput, responses=shapes.MemberSerializer)
    def patch(self, request: Request, slug: str, user: str) -> Response:
        """Give a member another role."""
        membership = members.change_role(
            self.actor, self.team(), user_id=user, **self.valid(shapes.RoleInput)
        )
        return Response(shapes.MemberSerializer(membership).data)

    @extend_schema(responses={204: NOTHING})
    def delete(self, request: Request, slug: str, user: str) -> Response:
        """Remove a member, or leave."""
        members.remove_member(self.actor, self.team(), user_id=user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Invitations(TeamView):
    """Open invitations of a team."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.InvitationSerializer))
    def get(self, request: Request, slug: str) -> Response:
        """List open invitations, newest first; managers only see any."""
        rows = selectors.invitations_for(self.actor, self.team())
        return self.page(rows, shapes.InvitationSerializer)


class OneInvitation(TeamView):
    """One open invitation."""

    @extend_schema(responses={204: NOTHING})
    def delete(self, request: Request, slug: str, invitation: str) -> Response:
        """Withdraw an invitation; its link ends."""
        members.withdraw_invitation(self.actor, self.team(), invitation_id=invitation)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Secrets(TeamView):
    """Secrets of a team."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.SecretSerializer))
    def get(self, request: Request, slug: str) -> Response:
        """List secrets by name, never their values."""
        rows = selectors.secrets_for(self.actor, self.team())
        return self.page(rows, shapes.SecretSerializer, order="name")

    @extend_schema(request=shapes.SecretInput, responses={201: shapes.SecretSerializer})
    @idempotent()
    def post(self, request: Request, slug: str) -> Response:
        """Store a new secret."""
        secret = secrets.create_secret(self.actor, self.team(), **self.valid(shapes.SecretInput))
        return Response(shapes.SecretSerializer(secret).data, status=status.HTTP_201_CREATED)


class OneSecret(TeamView):
    """One secret of a team."""

    @extend_schema(request=shapes.SecretValue, responses=shapes.SecretSerializer)
    def put(self, request: Request, slug: str, name: str) -> Response:
        """Replace a secret's value."""
        secret = secrets.replace_secret(
            self.actor, self.team(), name=name, **self.valid(shapes.SecretValue)
        )
        return Response(shapes.SecretSerializer(secret).data)

    @extend_schema(responses={204: NOTHING})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """Delete a secret for good."""
        secrets.delete_secret(self.actor, self.team(), name=name)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Events(TeamView):
    """A team's feed."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.EventSerializer))
    def get(self, request: Request, slug: str) -> Response:
        """List what happened in the team, newest first."""
        return self.page(selectors.events_for(self.actor, self.team()), shapes.EventSerializer)


class Tokens(ApiView):
    """The actor's own API tokens."""

    @extend_schema(parameters=PAGED, responses=page_of(shapes.TokenSerializer))
    def get(self, request: Request) -> Response:
        """List the own tokens that are not revoked, newest first."""
        return self.page(selectors.tokens_for(self.actor), shapes.TokenSerializer)

    @extend_schema(request=shapes.TokenInput, responses={201: shapes.MintedSerializer})
    @idempotent(secret=["token"])
    def post(self, request: Request) -> Response:
        """Make a token; its text is in this answer and nowhere else."""
        wanted = self.valid(shapes.TokenInput)
        slug = wanted.pop("team", None)
        team = selectors.team_for(self.actor, slug) if slug else None
        minted = tokens.create_token(self.actor, team=team, **wanted)
        shown = dict(shapes.TokenSerializer(minted.row).data)
        return Response({**shown, "token": minted.text}, status=status.HTTP_201_CREATED)


class OneToken(ApiView):
    """One of the actor's own API tokens."""

    @extend_schema(responses={204: NOTHING})
    def delete(self, request: Request, token: str) -> Response:
        """Revoke a token."""
        row = selectors.tokens_for(self.actor).filter(pk=token).first()
        if row is None:
            raise NotFound("not_found", "There is no such token of yours.")
        tokens.revoke_token(self.actor, row)
        return Response(status=status.HTTP_204_NO_CONTENT)


class Users(ApiView):
    """All people, for admins and auditors."""

    @extend_schema(
        parameters=[
            *PAGED,
            OpenApiParameter("q", str, description="part of the name or e-mail"),
            OpenApiParameter("site_role", str, enum=["admin", "auditor"]),
            OpenApiParameter("is_active", bool),
        ],
        responses=page_of(shapes.UserSerializer),
    )
    def get(self, request: Request) -> Response:
        """List people, newest first."""
        rows = filters.users(selectors.users_for(self.actor), request.query_params)
        return self.page(rows, shapes.UserSerializer)


class OneUser(ApiView):
    """One person, for admins and auditors."""

    def _user(self, user_id: str) -> User:
        user = selectors.users_for(self.actor).filter(pk=user_id).first()
        if user is None:
            raise NotFound("not_found", "There is no such person.")
        return user

    @extend_schema(responses=shapes.UserSerializer)
    def get(self, request: Request, user: str) -> Response:
        """Return a person."""
        return Response(shapes.UserSerializer(self._user(user)).data)

    @extend_schema(request=shapes.UserPatch, responses=shapes.UserSerializer)
    def patch(self, request: Request, user: str) -> Response:
        """Change a person's site role, deactivate or reactivate."""
        users.change_user(self.actor, user_id=user, **self.valid(shapes.UserPatch))
        return Response(shapes.UserSerializer(self._user(user)).data)


class Audit(ApiView):
    """The audit log, for admins and auditors."""

    @extend_schema(
        parameters=[
            *PAGED,
            OpenApiParameter("q", str, description="part of actor, action or subject"),
            OpenApiParameter("team", str, description="a team's slug"),
            OpenApiParameter("action", str, description="such as token.created, or token."),
            OpenApiParameter("created_after", str, description="RFC 3339"),
            OpenApiParameter("created_before", str, description="RFC 3339"),
        ],
        responses=page_of(shapes.AuditSerializer),
    )
    def get(self, request: Request) -> Response:
        """List audit records, newest first."""
        rows = filters.audit(selectors.audit_for(self.actor), request.query_params)
        return self.page(rows, shapes.AuditSerializer)
