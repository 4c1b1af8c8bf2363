"""Tables of people, teams, tokens, secrets and the event log with its audit chain."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.expressions import RawSQL
from django.db.models.functions import Lower, Now

from portal.core import crypto, ids
from portal.core.fields import id_field
from portal.teams.roles import Role, SiteRole

slug_validator = RegexValidator(
    r"\A[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?\Z",
    "Use 1 to 40 lower-case letters, digits and hyphens, with a letter or digit at both ends.",
)
secret_name_validator = RegexValidator(
    r"\A[A-Za-z][A-Za-z0-9_.-]{0,99}\Z",
    "Use up to 100 letters, digits, dots, hyphens and underscores, beginning with a letter.",
)


class UserManager(BaseUserManager["User"]):
    """Makes users by e-mail address."""

    def create_user(self, email: str, password: str | None = None, **columns: Any) -> "User":
        """Create a user; without a password the account cannot sign in by password."""
        user = self.model(email=email.strip().lower(), **columns)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def get_by_natural_key(self, username: str | None) -> "User":
        """Find a user by e-mail, whatever its case."""
        return self.get(email=(username or "").strip().lower())


class User(AbstractBaseUser):
    """A person who signs in by e-mail."""

    id = id_field()
    email = models.EmailField(max_length=254, unique=True, help_text="lower case")
    name = models.CharField(max_length=250, blank=True)
    site_role = models.CharField(
        max_length=10, blank=True, default="", choices=[(r.value, r.name.lower()) for r in SiteRole]
    )
    is_active = models.BooleanField(default=True, help_text="false ends every session and token")
    created_at = models.DateTimeField(db_default=Now())
    deactivated_at = models.DateTimeField(null=True, blank=True)
    must_change_password = models.BooleanField(
        default=False, help_text="true while the one-time password of the first start is in use"
    )

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(email=Lower("email")), name="user_email_lower_case"
            ),
            models.CheckConstraint(
                condition=models.Q(site_role__in=[r.value for r in SiteRole]),
                name="user_site_role_known",
            ),
        ]

    def __str__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """What people are shown: the name, or else the e-mail."""
        return self.name or self.email


class Team(models.Model):
    """People who share clusters, secrets, quotas and budgets."""

    id = id_field()
    slug = models.CharField(max_length=40, unique=True, validators=[slug_validator])
    name = models.CharField(max_length=250)
    time_zone = models.CharField(
        max_length=64, default="UTC", help_text="IANA name; edges of months and quiet hours"
    )
    number = models.PositiveIntegerField(
        unique=True,
        editable=False,
        db_default=RawSQL("nextval('teams_team_number')", []),
        help_text="1, 2, 3 …; local jobs run as user 50000 + number",
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(slug__regex=r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$"),
                name="team_slug_shape",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in a team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=[(r.value, r.value) for r in Role])
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="membership_unique"),
            models.CheckConstraint(
                condition=models.Q(role__in=[r.value for r in Role]), name="membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.team_id}: {self.role}"


class Invitation(models.Model):
    """A link that makes its holder a member of a team, once, until it expires."""

    id = id_field()
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="invitations")
    email = models.EmailField(max_length=254, help_text="lower case; whom the link was made for")
    role = models.CharField(max_length=10, choices=[(r.value, r.value) for r in Role])
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the link's token")
    invited_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["team", "email"],
                condition=models.Q(accepted_at=None, withdrawn_at=None),
                name="invitation_open_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.team_id}"


class Limit(models.Model):
    """What a team may use at once or a month; an empty column is no limit. One row a team.

    Admission locks this row: see services.limits.lock_quota.
    """

    team = models.OneToOneField(Team, on_delete=models.CASCADE, related_name="limit")
    gpus = models.PositiveIntegerField(null=True, blank=True)
    gpus_by_type = models.JSONField(default=dict, blank=True, help_text="GPU type → count")
    nodes = models.PositiveIntegerField(null=True, blank=True)
    running_jobs = models.PositiveIntegerField(null=True, blank=True, help_text="0 pauses the team")
    gpu_hours_per_month = models.DecimalField(
        max_digits=14, decimal_places=4, null=True, blank=True
    )
    updated_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"limits of {self.team_id}"


class ApiToken(models.Model):
    """A key for the REST API; only its SHA-256 is stored."""

    id = id_field()
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    team = models.ForeignKey(
        Team, on_delete=models.CASCADE, null=True, blank=True, related_name="api_tokens"
    )
    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=12, help_text="the first characters, to recognise it by")
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256, hexadecimal")
    scopes = ArrayField(models.CharField(max_length=10))
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, help_text="exact to a minute")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["user", "-id"], name="token_of_user")]

    def __str__(self) -> str:
        return f"{self.prefix}…"


class Secret(models.Model):
    """A value that jobs of the team may use and nobody can read back."""

    id = id_field()
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=100, validators=[secret_name_validator])
    ciphertext = models.BinaryField(help_text="portal.core.crypto, bound to this row")
    created_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["team", "name"], name="secret_unique")]

    def __str__(self) -> str:
        return self.name


class Event(models.Model):
    """What a person may ask about later, written in the transaction of the change."""

    id = id_field()
    team = models.ForeignKey(Team, on_delete=models.CASCADE, null=True, related_name="events")
    actor = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    actor_label = models.CharField(max_length=254, help_text="name or e-mail at that time")
    action = models.CharField(max_length=60, help_text="noun.verb, as in member.added")
    subject = models.CharField(max_length=100, help_text="kind:id, as in user:01J…")
    facts = models.JSONField(default=dict)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        indexes = [models.Index(fields=["team", "-id"], name="event_of_team")]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"


class AuditEvent(models.Model):
    """An insert-only record of a change of power, secrets or money; no foreign keys on purpose.

    A database trigger refuses UPDATE, DELETE and TRUNCATE for every role.
    """

    id = id_field()
    at = models.DateTimeField(db_default=Now())
    actor_id = models.CharField(max_length=ids.LENGTH, blank=True)
    actor_label = models.CharField(max_length=254)
    via = models.CharField(max_length=40, help_text="session, token slw_…, or system")
    action = models.CharField(max_length=60)
    team_slug = models.CharField(max_length=40, blank=True)
    subject = models.CharField(max_length=100)
    facts = models.JSONField(default=dict)
    transaction = models.BigIntegerField(
        db_default=RawSQL("pg_current_xact_id()::text::bigint", []),
        help_text="the inserting transaction; sealed once every older one has ended",
    )

    class Meta:
        indexes = [
            models.Index(fields=["team_slug", "-id"], name="audit_of_team"),
            models.Index(fields=["action", "-id"], name="audit_of_action"),
            models.Index(fields=["at"], name="audit_at"),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"


class AuditSeal(models.Model):
    """One link of the chain over AuditEvent, insert-only; written by the sealer alone."""

    position = models.BigIntegerField(primary_key=True, help_text="1, 2, 3 … without a gap")
    event_id = models.CharField(max_length=ids.LENGTH, unique=True)
    previous_hash = models.CharField(max_length=64)
    hash = models.CharField(max_length=64, help_text="SHA-256 over previous_hash and the event")
    sealed_at = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"{self.position}: {self.hash[:12]}"


class IdempotencyRecord(models.Model):
    """The first answer to a creating request with an Idempotency-Key, kept for 24 hours."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    method = models.CharField(max_length=8)
    path = models.CharField(max_length=500)
    key = models.CharField(max_length=255)
    body_hash = models.CharField(max_length=64, help_text="SHA-256 of the request's body")
    status = models.PositiveSmallIntegerField(null=True, help_text="empty while in progress")
    body = models.JSONField(null=True, help_text="the answer, without secrets")
    created_at = models.DateTimeField(db_default=Now(), db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "method", "path", "key"], name="idempotency_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.key}"


SECRET_VALUES = crypto.column(Secret, "ciphertext")
