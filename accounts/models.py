"""People, tenants, and their access: roles, SSH keys, API tokens. And the audit trail."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import lru_cache
from typing import ClassVar
from zoneinfo import available_timezones

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

import accounts.announcements.models
import accounts.directory.models
import accounts.notices.models  # noqa: F401  # where Django looks for this room's models
from accounts.text import visible

# `berth-<slug>` is the namespace of a tenant; Berth's own are berth-agent and often berth-system.
SLUG_PATTERN = r"^(?!kube-)(?!(?:agent|system|default|public)$)[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z"
valid_slug = RegexValidator(
    SLUG_PATTERN,
    _("Use 1 to 40 small letters, digits and dashes; not agent, system, default, public or kube-…"),
)

TIME_ZONE_REGIONS = (
    "Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific",
)  # fmt: skip


@lru_cache(maxsize=1)
def time_zones() -> frozenset[str]:
    """Names of places such as Europe/Berlin, and UTC; not Etc/GMT-1, whose sign means the opposite."""
    places = (name for name in available_timezones() if name.partition("/")[0] in TIME_ZONE_REGIONS)
    return frozenset(places) | {"UTC"}


def valid_time_zone(name: str) -> None:
    if name not in time_zones():
        raise ValidationError(_("There is no such time zone: use a name such as Europe/Berlin."))


class Theme(models.TextChoices):
    LIGHT = "light", _("light")
    DARK = "dark", _("dark")


class User(AbstractUser):
    """A person, or a tenant's service account (`service_of`). Staff (`is_staff`) are the admins of the installation."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    first_name = models.CharField(_("first name"), max_length=150, blank=True, validators=[visible])
    last_name = models.CharField(_("last name"), max_length=150, blank=True, validators=[visible])
    email = models.EmailField(_("email address"), blank=True, validators=[visible])
    language = models.CharField(_("language"), max_length=16, blank=True, default="")
    time_zone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text=_("A name such as Europe/Berlin. Empty: the browser's."),
        validators=[valid_time_zone],
    )
    theme = models.CharField(_("theme"), max_length=8, blank=True, default="", db_default="", choices=Theme)
    sign_outs = models.PositiveIntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text=_("Number of times that all their sessions were ended."),
    )
    password_is_first = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("Set by an admin: valid for one sign-in, to choose a new password."),
    )
    staff_by_group = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("Admin through a group, for as long as they are in that group."),
    )
    # When the directory's sync deactivated them; null: it did not, or an admin decided after it.
    left_directory_at = models.DateTimeField(null=True, editable=False)
    service_of = models.ForeignKey(
        "Tenant",
        null=True,
        editable=False,
        on_delete=models.CASCADE,
        related_name="service_accounts",
        verbose_name=_("tenant"),
        help_text=_("Tenant that owns this service account; empty for people."),
    )
    responsible = models.ForeignKey(
        "self",
        null=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        verbose_name=_("responsible"),
        help_text=_("Owner who answers for this service account: its tokens work while they own its tenant."),
    )

    class Meta:
        verbose_name = _("person")
        verbose_name_plural = _("people")
        constraints: ClassVar = [
            # Django's mark of a password that nobody can enter is "!".
            models.CheckConstraint(
                condition=models.Q(service_of=None)
                | models.Q(is_staff=False, email="", password__startswith="!"),  # noqa: S106
                name="service_account_cannot_sign_in",
            )
        ]

    def get_session_auth_hash(self) -> str:
        """Hash that each session keeps. A sign-out everywhere changes it, so that no older session matches."""
        return super().get_session_auth_hash() + self._of_sign_outs

    def get_session_auth_fallback_hash(self) -> Iterator[str]:
        return (known + self._of_sign_outs for known in super().get_session_auth_fallback_hash())

    @property
    def _of_sign_outs(self) -> str:
        return f":{self.sign_outs}" if self.sign_outs else ""

    def has_perm(self, perm: str, obj: object = None) -> bool:
        """Return True for admins. There is one kind of admin: Django's permissions by model are not used."""
        return self.is_active and self.is_staff

    def has_module_perms(self, app_label: str) -> bool:
        return self.is_active and self.is_staff


class ServiceAccount(User):
    """Service accounts alone, for their list in the admin."""

    class Meta:
        proxy = True
        verbose_name = _("service account")
        verbose_name_plural = _("service accounts")


class Tenant(models.Model):
    """A team or project, with members, quotas, and one namespace `berth-<slug>` per cluster."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    slug = models.CharField(_("slug"), max_length=40, unique=True, validators=[valid_slug])
    name = models.CharField(_("name"), max_length=120, validators=[visible])
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    members = models.ManyToManyField(User, through="Membership", related_name="tenants")

    class Meta:
        verbose_name = _("tenant")
        verbose_name_plural = _("tenants")
        ordering: ClassVar = ["slug"]

    def __str__(self) -> str:
        return self.name

    @property
    def namespace(self) -> str:
        return f"berth-{self.slug}"


class Role(models.TextChoices):
    OWNER = "owner", _("owner")
    MEMBER = "member", _("member")
    VIEWER = "viewer", _("viewer")


class Membership(models.Model):
    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="memberships", verbose_name=_("tenant")
    )
    user = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="memberships", verbose_name=_("user")
    )
    role = models.CharField(_("role"), max_length=8, choices=Role, default=Role.MEMBER)
    by_group = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text=_("Comes from a single sign-on group and changes with it."),
    )
    # Since when nobody answers for this service account; null: somebody does, or it is a person.
    lapsed_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_membership_per_person_and_tenant")
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.tenant}"


class SSHKey(models.Model):
    """A public key that may log in to its owner's workspaces."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="ssh_keys", verbose_name=_("user"))
    name = models.CharField(_("name"), max_length=80)
    public_key = models.TextField(_("public key"), help_text=_("One line in OpenSSH's format."))
    fingerprint = models.CharField(_("fingerprint"), max_length=64)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("SSH key")
        verbose_name_plural = _("SSH keys")
        ordering: ClassVar = ["created_at", "id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "fingerprint"], name="one_ssh_key_once_per_person")
        ]

    def __str__(self) -> str:
        return self.name


class Scope(models.TextChoices):
    READ = "read", _("read")
    WORKSPACES = "workspaces", _("workspaces")
    JOBS = "jobs", _("jobs")
    VOLUMES = "volumes", _("volumes")
    ADMIN = "admin", _("admin")


class APIToken(models.Model):
    """A token for scripts: found by its prefix, checked by its digest; the secret itself is shown once."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens", verbose_name=_("user"))
    name = models.CharField(_("name"), max_length=80)
    prefix = models.CharField(_("prefix"), max_length=12, unique=True)
    digest = models.CharField(max_length=64, help_text=_("SHA-256 of the whole token, in hex."))
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope), verbose_name=_("scopes"))
    tenant = models.ForeignKey(
        Tenant, null=True, blank=True, on_delete=models.CASCADE, verbose_name=_("only in this tenant")
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    expires_at = models.DateTimeField(_("expires"))
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering: ClassVar = ["-created_at", "id"]

    def __str__(self) -> str:
        return self.name


class SocketTicket(models.Model):
    """A ticket that opens one websocket within a minute: a script's token must not be in an address."""

    digest = models.CharField(max_length=64, primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    token = models.ForeignKey(
        APIToken,
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text=_("Whose limits the websocket keeps; empty: a session's."),
    )
    # Row of the session that asked for it, and with which the websocket ends.
    session_row = models.CharField(max_length=40, blank=True, default="", db_default="")
    expires_at = models.DateTimeField(db_index=True)


class DeviceCode(models.Model):
    """Sign-in of a terminal that waits for a person to confirm its code in a browser (RFC 8628)."""

    digest = models.CharField(
        max_length=64, primary_key=True, help_text=_("SHA-256 of the terminal's secret.")
    )
    user_code = models.CharField(max_length=8, unique=True)
    name = models.CharField(max_length=80, help_text=_("How the terminal calls itself."))
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope))
    address = models.GenericIPAddressField(null=True)
    # Who allowed it, and the row of the session by which they did: the token is only made if both are still valid.
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+")
    session_row = models.CharField(max_length=40, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(db_index=True)


class AuditEntry(models.Model):
    """A change or refusal: who, what, on what, when. Berth never updates it, and deletes only whole months of entries.

    The table is partitioned by month (`accounts/trail/partitions.py`). `id` is the primary key of each partition, but
    not of the whole, so a query cannot group by it and select other columns.
    """

    class Outcome(models.TextChoices):
        DONE = "done", _("done")
        REFUSED = "refused", _("refused")

    at = models.DateTimeField(_("time"), auto_now_add=True, db_index=True)
    # A trigger sets both references to null (migration 0008): no part of Berth may change an entry.
    actor = models.ForeignKey(User, null=True, on_delete=models.DO_NOTHING, related_name="+")
    actor_name = models.CharField(
        _("actor name"), max_length=150, blank=True, help_text=_("Kept after the person is removed.")
    )
    action = models.CharField(
        _("action"), max_length=64, help_text=_("Dotted: what kind, then the verb, as in workspace.launch")
    )
    outcome = models.CharField(_("outcome"), max_length=8, choices=Outcome, default=Outcome.DONE)
    tenant = models.ForeignKey(
        Tenant, null=True, on_delete=models.DO_NOTHING, related_name="+", verbose_name=_("tenant")
    )
    target_kind = models.CharField(_("target kind"), max_length=32, blank=True)
    target_id = models.CharField(_("target id"), max_length=64, blank=True)
    address = models.GenericIPAddressField(_("address"), null=True)
    data = models.JSONField(default=dict, help_text=_("Never a secret."))

    class Meta:
        verbose_name = _("audit entry")
        verbose_name_plural = _("audit trail")
        ordering: ClassVar = ["-at", "-id"]
        indexes: ClassVar = [
            models.Index(fields=["target_kind", "target_id"], name="audit_of_one_thing"),
            models.Index(fields=["tenant", "-at", "-id"], name="audit_newest_of_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.action} · {self.actor_name or '–'}"


class SignInFailure(models.Model):
    """A refused sign-in, counted to slow down guessing; rows older than the window are removed.

    `username` is the digest of what the attempt is counted under (accounts/credentials/guessing.py).
    """

    at = models.DateTimeField(auto_now_add=True, db_index=True)
    username = models.CharField(max_length=150, db_index=True)
    address = models.GenericIPAddressField(null=True, db_index=True)


class IdempotentAnswer(models.Model):
    """The answer to a done POST with an Idempotency-Key or form token, kept 24 h so that nothing is done twice."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    request_digest = models.CharField(max_length=64, help_text=_("SHA-256 of token, path and body."))
    status = models.PositiveSmallIntegerField(default=0)
    body = models.TextField(blank=True, help_text=_("Encrypted: the answer may hold a token's secret."))
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "key"], name="one_idempotency_key_per_person")
        ]
