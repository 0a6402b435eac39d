import uuid

import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_notices_of_jobs"),
        ("clusters", "0007_metrics_namespace"),
        ("monitoring", "0005_idle_reclaim"),
        ("quotas", "0007_extra_resources"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AlertPass",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("raise_queued_at", models.DateTimeField(null=True)),
                ("raised_at", models.DateTimeField(null=True)),
                ("send_queued_at", models.DateTimeField(null=True)),
                ("site_ends_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Alert",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("group", models.CharField(db_index=True, max_length=200)),
                ("code", models.CharField(max_length=64, verbose_name="code")),
                ("data", models.JSONField(default=dict)),
                (
                    "severity",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")], verbose_name="severity"
                    ),
                ),
                (
                    "pools",
                    models.JSONField(default=list, help_text="Ids of the pools that its nodes belong to."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("firing", "firing"),
                            ("acknowledged", "acknowledged"),
                            ("silenced", "silenced"),
                            ("resolved", "resolved"),
                        ],
                        default="firing",
                        max_length=12,
                        verbose_name="state",
                    ),
                ),
                ("count", models.PositiveIntegerField(default=0, verbose_name="members")),
                ("open_count", models.PositiveIntegerField(default=0)),
                ("since", models.DateTimeField(verbose_name="since")),
                ("last_at", models.DateTimeField(verbose_name="last member")),
                ("round", models.PositiveIntegerField(default=1)),
                ("round_at", models.DateTimeField()),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("silenced_until", models.DateTimeField(null=True)),
                ("resolved_at", models.DateTimeField(null=True)),
                ("escalated_at", models.DateTimeField(null=True)),
                (
                    "acknowledged_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="clusters.cluster",
                        verbose_name="cluster",
                    ),
                ),
                (
                    "resolved_by",
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
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "alert",
                "verbose_name_plural": "alerts",
                "ordering": ["-since", "-id"],
            },
        ),
        migrations.CreateModel(
            name="AlertMember",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200)),
                ("code", models.CharField(max_length=64)),
                ("data", models.JSONField(default=dict)),
                (
                    "severity",
                    models.PositiveSmallIntegerField(choices=[(1, "info"), (2, "warning"), (3, "critical")]),
                ),
                ("node", models.CharField(blank=True, max_length=253)),
                ("name", models.CharField(blank=True, max_length=512)),
                ("link", models.CharField(blank=True, max_length=240)),
                ("since", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "alert",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="members",
                        to="monitoring.alert",
                    ),
                ),
            ],
            options={
                "ordering": ["since", "pk"],
            },
        ),
        migrations.CreateModel(
            name="AlertRoute",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=80, verbose_name="name")),
                (
                    "way",
                    models.CharField(
                        choices=[
                            ("admins", "mail to all admins"),
                            ("mail", "mail"),
                            ("webhook", "webhook"),
                            ("slack", "Slack"),
                            ("mattermost", "Mattermost"),
                            ("feishu", "Feishu / Lark"),
                            ("dingtalk", "DingTalk"),
                            ("heartbeat", "heartbeat (dead man's switch)"),
                        ],
                        max_length=12,
                        verbose_name="way",
                    ),
                ),
                ("address", models.TextField(blank=True, editable=False)),
                ("secret", models.TextField(blank=True, editable=False)),
                (
                    "host",
                    models.CharField(blank=True, editable=False, max_length=254, verbose_name="where to"),
                ),
                (
                    "least_severity",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "info"), (2, "warning"), (3, "critical")],
                        default=2,
                        verbose_name="from severity",
                    ),
                ),
                (
                    "escalates_after_minutes",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Minutes. Empty: at once.",
                        null=True,
                        verbose_name="only if nobody acknowledged it within",
                    ),
                ),
                (
                    "every_minutes",
                    models.PositiveSmallIntegerField(
                        default=5, help_text="Minutes; for heartbeats only.", verbose_name="heartbeat every"
                    ),
                ),
                (
                    "may_reach_inside",
                    models.BooleanField(
                        default=False,
                        help_text="For a route of a tenant: addresses of this server and of the clusters are not refused.",
                        verbose_name="may reach Berth's own networks",
                    ),
                ),
                ("is_enabled", models.BooleanField(default=True, verbose_name="enabled")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created at",
                    ),
                ),
                ("last_beat_at", models.DateTimeField(editable=False, null=True)),
                ("beat_tried_at", models.DateTimeField(editable=False, null=True)),
                ("beat_error", models.CharField(blank=True, editable=False, max_length=240)),
                (
                    "cluster",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="clusters.cluster",
                        verbose_name="only of the cluster",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="quotas.pool",
                        verbose_name="only of the pool",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                        verbose_name="only of the tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "alert route",
                "verbose_name_plural": "alert routes",
                "ordering": ["-created_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="AlertDelivery",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "occasion",
                    models.CharField(
                        choices=[
                            ("firing", "firing"),
                            ("escalated", "escalated"),
                            ("resolved", "resolved"),
                            ("test", "test"),
                        ],
                        max_length=12,
                        verbose_name="occasion",
                    ),
                ),
                ("round", models.PositiveIntegerField(default=1)),
                ("batch", models.UUIDField(db_index=True, null=True, verbose_name="message")),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("sent", "sent"), ("given_up", "given up")],
                        default="waiting",
                        max_length=12,
                        verbose_name="state",
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0, verbose_name="attempts")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created at"
                    ),
                ),
                ("due_at", models.DateTimeField(null=True, verbose_name="next attempt")),
                ("status_code", models.PositiveSmallIntegerField(null=True, verbose_name="answer")),
                ("error", models.CharField(blank=True, max_length=240, verbose_name="last error")),
                ("sent_at", models.DateTimeField(null=True, verbose_name="sent at")),
                (
                    "alert",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="monitoring.alert",
                        verbose_name="alert",
                    ),
                ),
                (
                    "recipient",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="recipient",
                    ),
                ),
                (
                    "route",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="monitoring.alertroute",
                        verbose_name="route",
                    ),
                ),
            ],
            options={
                "verbose_name": "delivery of an alert",
                "verbose_name_plural": "deliveries of alerts",
                "ordering": ["-created_at", "-id"],
            },
        ),
        migrations.AddIndex(
            model_name="alert",
            index=models.Index(fields=["state", "-since", "-id"], name="alerts_by_state"),
        ),
        migrations.AddConstraint(
            model_name="alert",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("resolved_at__isnull", False), ("state", "resolved")),
                    models.Q(models.Q(("state", "resolved"), _negated=True), ("resolved_at__isnull", True)),
                    _connector="OR",
                ),
                name="resolved_alert_has_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="alertmember",
            constraint=models.UniqueConstraint(fields=("alert", "key"), name="member_of_an_alert_once"),
        ),
        migrations.AddConstraint(
            model_name="alertmember",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True)), fields=("key",), name="firing_in_one_alert"
            ),
        ),
        migrations.AddConstraint(
            model_name="alertroute",
            constraint=models.UniqueConstraint(
                condition=models.Q(("way", "admins")), fields=("way",), name="one_route_to_all_admins"
            ),
        ),
        migrations.AddIndex(
            model_name="alertdelivery",
            index=models.Index(
                condition=models.Q(("state", "waiting")), fields=["due_at"], name="alert_outbox"
            ),
        ),
        migrations.AddIndex(
            model_name="alertdelivery",
            index=models.Index(fields=["route", "recipient", "-sent_at"], name="alert_deliveries_of_a_route"),
        ),
        migrations.AddConstraint(
            model_name="alertdelivery",
            constraint=models.UniqueConstraint(
                condition=models.Q(("alert__isnull", False)),
                fields=("alert", "occasion", "round", "route", "recipient"),
                name="one_delivery_of_an_occasion",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="alertdelivery",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("due_at__isnull", False), ("state", "waiting")),
                    models.Q(models.Q(("state", "waiting"), _negated=True), ("due_at__isnull", True)),
                    _connector="OR",
                ),
                name="alert_that_waits_has_a_time",
            ),
        ),
    ]
