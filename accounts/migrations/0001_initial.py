import uuid

import django.contrib.auth.models
import django.contrib.auth.validators
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import accounts.models
import accounts.text


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.CreateModel(
            name="SignInFailure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True, db_index=True)),
                ("username", models.CharField(db_index=True, max_length=150)),
                ("address", models.GenericIPAddressField(db_index=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="User",
            fields=[
                ("password", models.CharField(max_length=128, verbose_name="password")),
                ("last_login", models.DateTimeField(blank=True, null=True, verbose_name="last login")),
                (
                    "is_superuser",
                    models.BooleanField(
                        default=False,
                        help_text="Designates that this user has all permissions without explicitly assigning them.",
                        verbose_name="superuser status",
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        error_messages={"unique": "A user with that username already exists."},
                        help_text="Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.",
                        max_length=150,
                        unique=True,
                        validators=[django.contrib.auth.validators.UnicodeUsernameValidator()],
                        verbose_name="username",
                    ),
                ),
                ("first_name", models.CharField(blank=True, max_length=150, verbose_name="first name")),
                ("last_name", models.CharField(blank=True, max_length=150, verbose_name="last name")),
                ("email", models.EmailField(blank=True, max_length=254, verbose_name="email address")),
                (
                    "is_staff",
                    models.BooleanField(
                        default=False,
                        help_text="Designates whether the user can log into this admin site.",
                        verbose_name="staff status",
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(
                        default=True,
                        help_text="Designates whether this user should be treated as active. Unselect this instead of deleting accounts.",
                        verbose_name="active",
                    ),
                ),
                (
                    "date_joined",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="date joined"),
                ),
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "language",
                    models.CharField(blank=True, default="", max_length=16, verbose_name="language"),
                ),
                (
                    "time_zone",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="A name such as Europe/Berlin. Empty: the browser's.",
                        max_length=64,
                        validators=[accounts.models.valid_time_zone],
                        verbose_name="time zone",
                    ),
                ),
                (
                    "theme",
                    models.CharField(
                        blank=True,
                        choices=[("light", "light"), ("dark", "dark")],
                        db_default="",
                        default="",
                        max_length=8,
                        verbose_name="theme",
                    ),
                ),
                (
                    "sign_outs",
                    models.PositiveIntegerField(
                        db_default=0,
                        default=0,
                        editable=False,
                        help_text="Number of times that all their sessions were ended.",
                    ),
                ),
                (
                    "password_is_first",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="Set by an admin: valid for one sign-in, to choose a new password.",
                    ),
                ),
                (
                    "staff_by_group",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="Admin through a group, for as long as they are in that group.",
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="The groups this user belongs to. A user will get all permissions granted to each of their groups.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Specific permissions for this user.",
                        related_name="user_set",
                        related_query_name="user",
                        to="auth.permission",
                        verbose_name="user permissions",
                    ),
                ),
            ],
            options={
                "verbose_name": "person",
                "verbose_name_plural": "people",
            },
            managers=[
                ("objects", django.contrib.auth.models.UserManager()),
            ],
        ),
        migrations.CreateModel(
            name="Announcement",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "text",
                    models.CharField(max_length=500, validators=[accounts.text.visible], verbose_name="text"),
                ),
                (
                    "level",
                    models.CharField(
                        choices=[("info", "info"), ("warn", "warning"), ("bad", "severe")],
                        default="info",
                        max_length=4,
                        verbose_name="severity",
                    ),
                ),
                (
                    "shown_from",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="shown from"),
                ),
                (
                    "shown_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="Empty: until somebody ends it.",
                        null=True,
                        verbose_name="shown until",
                    ),
                ),
                (
                    "no_launches_from",
                    models.DateTimeField(
                        blank=True,
                        help_text="For maintenance: from then until its end nothing new starts, except by admins. What runs is not affected, and requests wait. Empty: launches go on.",
                        null=True,
                        verbose_name="no launches from",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
            ],
            options={
                "verbose_name": "announcement",
                "verbose_name_plural": "announcements",
                "ordering": ["-shown_from", "id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("shown_until", None),
                            ("shown_until__gt", models.F("shown_from")),
                            _connector="OR",
                        ),
                        name="announcement_ends_after_its_begin",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("no_launches_from", None),
                            ("no_launches_from__gte", models.F("shown_from")),
                            _connector="OR",
                        ),
                        name="announcement_comes_before_its_maintenance",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="APIToken",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=80, verbose_name="name")),
                ("prefix", models.CharField(max_length=12, unique=True, verbose_name="prefix")),
                ("digest", models.CharField(help_text="SHA-256 of the whole token, in hex.", max_length=64)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            choices=[
                                ("read", "read"),
                                ("workspaces", "workspaces"),
                                ("jobs", "jobs"),
                                ("volumes", "volumes"),
                                ("admin", "admin"),
                            ],
                            max_length=16,
                        ),
                        size=None,
                        verbose_name="scopes",
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                ("expires_at", models.DateTimeField(verbose_name="expires")),
                ("last_used_at", models.DateTimeField(blank=True, null=True, verbose_name="last used")),
                ("revoked_at", models.DateTimeField(blank=True, null=True, verbose_name="revoked")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tokens",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "API token",
                "verbose_name_plural": "API tokens",
                "ordering": ["-created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Membership",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[("owner", "owner"), ("member", "member"), ("viewer", "viewer")],
                        default="member",
                        max_length=8,
                        verbose_name="role",
                    ),
                ),
                (
                    "by_group",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        help_text="Comes from a single sign-on group and changes with it.",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="memberships",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "membership",
                "verbose_name_plural": "memberships",
            },
        ),
        migrations.CreateModel(
            name="SocketTicket",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("session_row", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("expires_at", models.DateTimeField(db_index=True)),
                (
                    "token",
                    models.ForeignKey(
                        help_text="Whose limits the websocket keeps; empty: a session's.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.apitoken",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Tenant",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "slug",
                    models.CharField(
                        max_length=40,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^(?!kube-)(?!(?:agent|system|default|public)$)[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\\Z",
                                "Use 1 to 40 small letters, digits and dashes; not agent, system, default, public or kube-…",
                            )
                        ],
                        verbose_name="slug",
                    ),
                ),
                (
                    "name",
                    models.CharField(max_length=120, validators=[accounts.text.visible], verbose_name="name"),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                (
                    "members",
                    models.ManyToManyField(
                        related_name="tenants", through="accounts.Membership", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "verbose_name": "tenant",
                "verbose_name_plural": "tenants",
                "ordering": ["slug"],
            },
        ),
        migrations.AddField(
            model_name="membership",
            name="tenant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="memberships",
                to="accounts.tenant",
                verbose_name="tenant",
            ),
        ),
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True, db_index=True, verbose_name="time")),
                (
                    "actor_name",
                    models.CharField(
                        blank=True,
                        help_text="Kept after the person is removed.",
                        max_length=150,
                        verbose_name="actor name",
                    ),
                ),
                (
                    "action",
                    models.CharField(
                        help_text="Dotted: what kind, then the verb, as in workspace.launch",
                        max_length=64,
                        verbose_name="action",
                    ),
                ),
                (
                    "outcome",
                    models.CharField(
                        choices=[("done", "done"), ("refused", "refused")],
                        default="done",
                        max_length=8,
                        verbose_name="outcome",
                    ),
                ),
                ("target_kind", models.CharField(blank=True, max_length=32, verbose_name="target kind")),
                ("target_id", models.CharField(blank=True, max_length=64, verbose_name="target id")),
                ("address", models.GenericIPAddressField(null=True, verbose_name="address")),
                ("data", models.JSONField(default=dict, help_text="Never a secret.")),
                (
                    "actor",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit trail",
                "ordering": ["-at", "-id"],
            },
        ),
        migrations.AddField(
            model_name="apitoken",
            name="tenant",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                to="accounts.tenant",
                verbose_name="only in this tenant",
            ),
        ),
        migrations.CreateModel(
            name="IdempotentAnswer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                (
                    "request_digest",
                    models.CharField(help_text="SHA-256 of token, path and body.", max_length=64),
                ),
                ("status", models.PositiveSmallIntegerField(default=0)),
                (
                    "body",
                    models.TextField(
                        blank=True, help_text="Encrypted: the answer may hold a token's secret."
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "key"), name="one_idempotency_key_per_person")
                ],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("ready", "ready"),
                            ("failed", "failed"),
                            ("stopped", "stopped or interrupted"),
                            ("stops_soon", "stops soon"),
                            ("quota", "quota changed"),
                            ("budget", "budget nearly or fully used"),
                            ("booking", "GPUs booked"),
                            ("health", "GPU or node unhealthy"),
                            ("job", "job over"),
                            ("volume", "volume received"),
                            ("share", "workspace shared"),
                        ],
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                ("key", models.CharField(max_length=120)),
                ("subject", models.CharField(max_length=16)),
                ("subject_id", models.UUIDField()),
                ("data", models.JSONField(default=dict, help_text="Codes and figures; never a secret.")),
                ("at", models.DateTimeField(auto_now_add=True, db_index=True, verbose_name="sent on")),
                ("in_berth", models.BooleanField(verbose_name="shown in Berth")),
                ("read_at", models.DateTimeField(null=True, verbose_name="read")),
                (
                    "mail",
                    models.CharField(
                        choices=[
                            ("none", "not by mail"),
                            ("waiting", "waiting to be sent"),
                            ("sent", "sent"),
                            ("needless", "no longer needed"),
                            ("given_up", "failed"),
                        ],
                        default="none",
                        max_length=8,
                        verbose_name="mail",
                    ),
                ),
                ("mail_due_at", models.DateTimeField(null=True, verbose_name="next attempt")),
                ("mail_pass_at", models.DateTimeField(null=True)),
                ("mail_attempts", models.PositiveSmallIntegerField(default=0, verbose_name="attempts")),
                ("mail_error", models.CharField(blank=True, max_length=240, verbose_name="last error")),
                ("mail_settled_at", models.DateTimeField(null=True, verbose_name="sent or failed")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notices",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "notice",
                "verbose_name_plural": "notices",
                "ordering": ["-at", "-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("in_berth", True)),
                        fields=["user", "-at", "-id"],
                        name="notice_list",
                    ),
                    models.Index(
                        condition=models.Q(("mail", "waiting")), fields=["mail_due_at"], name="notice_outbox"
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("user", "key"), name="one_notice_of_a_thing_per_person"),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("mail", "waiting"), ("mail_due_at__isnull", False)),
                            models.Q(
                                models.Q(("mail", "waiting"), _negated=True), ("mail_due_at__isnull", True)
                            ),
                            _connector="OR",
                        ),
                        name="mail_that_waits_has_a_time",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="NoticePreference",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("ready", "ready"),
                            ("failed", "failed"),
                            ("stopped", "stopped or interrupted"),
                            ("stops_soon", "stops soon"),
                            ("quota", "quota changed"),
                            ("budget", "budget nearly or fully used"),
                            ("booking", "GPUs booked"),
                            ("health", "GPU or node unhealthy"),
                            ("job", "job over"),
                            ("volume", "volume received"),
                            ("share", "workspace shared"),
                        ],
                        max_length=16,
                    ),
                ),
                ("in_berth", models.BooleanField()),
                ("by_mail", models.BooleanField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "kind"), name="one_preference_per_person_and_kind"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SSHKey",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=80, verbose_name="name")),
                (
                    "public_key",
                    models.TextField(help_text="One line in OpenSSH's format.", verbose_name="public key"),
                ),
                ("fingerprint", models.CharField(max_length=64, verbose_name="fingerprint")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="ssh_keys",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "SSH key",
                "verbose_name_plural": "SSH keys",
                "ordering": ["created_at", "id"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("user", "fingerprint"), name="one_ssh_key_once_per_person"
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="membership",
            constraint=models.UniqueConstraint(
                fields=("tenant", "user"), name="one_membership_per_person_and_tenant"
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["target_kind", "target_id"], name="audit_of_one_thing"),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(fields=["tenant", "-at", "-id"], name="audit_newest_of_tenant"),
        ),
        # Buckets of accounts.rest.rates. Unlogged: a count is not worth a write to disk, and none is missed after a crash.
        migrations.RunSQL(
            "CREATE UNLOGGED TABLE accounts_rate (bucket text PRIMARY KEY, empty_at timestamptz NOT NULL)"
            " WITH (fillfactor = 50)",
            "DROP TABLE accounts_rate",
        ),
    ]
