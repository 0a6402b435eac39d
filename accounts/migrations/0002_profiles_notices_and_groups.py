"""Profiles, notices by mail and in Berth, roles and administration that follow groups; and names for fields in the admin."""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import accounts.models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
    ]

    operations = [
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
                        ],
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                ("key", models.CharField(max_length=120)),
                ("subject", models.CharField(max_length=16)),
                ("subject_id", models.UUIDField()),
                ("data", models.JSONField(default=dict, help_text="Codes and figures; never a secret.")),
                ("at", models.DateTimeField(auto_now_add=True, db_index=True, verbose_name="told")),
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
                            ("given_up", "given up"),
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
                ("mail_settled_at", models.DateTimeField(null=True, verbose_name="sent or given up")),
            ],
            options={
                "verbose_name": "notice",
                "verbose_name_plural": "notices",
                "ordering": ["-at", "-id"],
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
                        ],
                        max_length=16,
                    ),
                ),
                ("in_berth", models.BooleanField()),
                ("by_mail", models.BooleanField()),
            ],
        ),
        migrations.AlterModelOptions(
            name="user",
            options={"verbose_name": "person", "verbose_name_plural": "people"},
        ),
        migrations.AddField(
            model_name="membership",
            name="by_group",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="Given by a group of the sign-on; follows that group.",
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="sign_outs",
            field=models.PositiveIntegerField(
                db_default=0,
                default=0,
                editable=False,
                help_text="How often all of their sessions were ended.",
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="staff_by_group",
            field=models.BooleanField(
                db_default=False,
                default=False,
                editable=False,
                help_text="An admin because of a group; is one while in that group.",
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="theme",
            field=models.CharField(
                blank=True,
                choices=[("light", "light"), ("dark", "dark")],
                db_default="",
                default="",
                max_length=8,
                verbose_name="theme",
            ),
        ),
        migrations.AddField(
            model_name="user",
            name="time_zone",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="A name such as Europe/Berlin. Empty: the browser's.",
                max_length=64,
                validators=[accounts.models.valid_time_zone],
                verbose_name="time zone",
            ),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="prefix",
            field=models.CharField(max_length=12, unique=True, verbose_name="prefix"),
        ),
        migrations.AlterField(
            model_name="apitoken",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="tokens",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="action",
            field=models.CharField(
                help_text="Dotted: what kind, then the verb, as in workspace.launch",
                max_length=64,
                verbose_name="action",
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="actor_name",
            field=models.CharField(
                blank=True,
                help_text="Kept when the person is removed.",
                max_length=150,
                verbose_name="actor name",
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="address",
            field=models.GenericIPAddressField(null=True, verbose_name="address"),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="at",
            field=models.DateTimeField(auto_now_add=True, db_index=True, verbose_name="time"),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="outcome",
            field=models.CharField(
                choices=[("done", "done"), ("refused", "refused")],
                default="done",
                max_length=8,
                verbose_name="outcome",
            ),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="target_id",
            field=models.CharField(blank=True, max_length=64, verbose_name="target id"),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="target_kind",
            field=models.CharField(blank=True, max_length=32, verbose_name="target kind"),
        ),
        migrations.AlterField(
            model_name="auditentry",
            name="tenant",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="accounts.tenant",
                verbose_name="tenant",
            ),
        ),
        migrations.AlterField(
            model_name="membership",
            name="tenant",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="memberships",
                to="accounts.tenant",
                verbose_name="tenant",
            ),
        ),
        migrations.AlterField(
            model_name="membership",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="memberships",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AlterField(
            model_name="sshkey",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
        ),
        migrations.AlterField(
            model_name="sshkey",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="ssh_keys",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AlterField(
            model_name="tenant",
            name="created_at",
            field=models.DateTimeField(auto_now_add=True, verbose_name="created at"),
        ),
        migrations.AddField(
            model_name="notice",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="notices",
                to=settings.AUTH_USER_MODEL,
                verbose_name="user",
            ),
        ),
        migrations.AddField(
            model_name="noticepreference",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.UniqueConstraint(
                fields=("user", "key"), name="one_notice_of_a_thing_per_person"
            ),
        ),
        migrations.AddConstraint(
            model_name="notice",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("mail", "waiting"), ("mail_due_at__isnull", False)),
                    models.Q(models.Q(("mail", "waiting"), _negated=True), ("mail_due_at__isnull", True)),
                    _connector="OR",
                ),
                name="mail_that_waits_has_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="noticepreference",
            constraint=models.UniqueConstraint(
                fields=("user", "kind"), name="one_preference_per_person_and_kind"
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                condition=models.Q(("in_berth", True)), fields=["user", "-at", "-id"], name="notice_list"
            ),
        ),
        migrations.AddIndex(
            model_name="notice",
            index=models.Index(
                condition=models.Q(("mail", "waiting")), fields=["mail_due_at"], name="notice_outbox"
            ),
        ),
    ]
