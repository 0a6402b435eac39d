import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_notices_of_jobs"),
        ("clusters", "0007_metrics_namespace"),
        ("monitoring", "0006_alerts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="agentstate",
            name="counts_oom_kills",
            field=models.BooleanField(
                db_default=False, default=False, help_text="It sees the memory limits of the node's pods."
            ),
        ),
        migrations.CreateModel(
            name="PostMortem",
            fields=[
                ("id", models.UUIDField(editable=False, primary_key=True, serialize=False)),
                (
                    "holder_kind",
                    models.CharField(
                        choices=[("workspace", "workspace"), ("job", "job")],
                        max_length=12,
                        verbose_name="kind",
                    ),
                ),
                ("holder_id", models.UUIDField()),
                ("name", models.CharField(max_length=63, verbose_name="name")),
                ("part", models.PositiveIntegerField(default=0)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("image", models.CharField(blank=True, max_length=40, verbose_name="image")),
                ("pool", models.CharField(blank=True, max_length=63, verbose_name="pool")),
                ("node", models.CharField(blank=True, max_length=253, verbose_name="node")),
                (
                    "happened",
                    models.CharField(
                        choices=[
                            ("failed", "failed"),
                            ("evicted", "evicted"),
                            ("interrupted", "interrupted"),
                            ("restarted", "container restarted"),
                            ("rejected", "rejected by its node"),
                            ("lost", "end not confirmed"),
                        ],
                        max_length=12,
                        verbose_name="what happened",
                    ),
                ),
                ("code", models.CharField(max_length=64)),
                ("data", models.JSONField(default=dict)),
                ("verdict", models.CharField(blank=True, max_length=64, verbose_name="verdict")),
                ("verdict_data", models.JSONField(default=dict)),
                ("started_at", models.DateTimeField(null=True, verbose_name="started at")),
                ("ended_at", models.DateTimeField(verbose_name="ended at")),
                ("facts", models.JSONField(default=dict)),
                ("lines", models.JSONField(default=list)),
                ("gpus", models.JSONField(default=list, verbose_name="GPUs")),
                ("due_at", models.DateTimeField(null=True)),
                ("gathered_at", models.DateTimeField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="clusters.cluster",
                        verbose_name="cluster",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "post-mortem",
                "verbose_name_plural": "post-mortems",
                "ordering": ["-ended_at", "-id"],
            },
        ),
        migrations.CreateModel(
            name="PostMortemNote",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("author_name", models.CharField(max_length=150)),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("text", models.TextField(max_length=4000)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "post_mortem",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notes",
                        to="monitoring.postmortem",
                    ),
                ),
            ],
            options={
                "ordering": ["at", "id"],
            },
        ),
        migrations.CreateModel(
            name="SeenPod",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("uid", models.CharField(max_length=64)),
                ("run", models.UUIDField(null=True)),
                ("namespace", models.CharField(max_length=253)),
                ("name", models.CharField(blank=True, max_length=253)),
                ("node", models.CharField(blank=True, max_length=253)),
                ("status", models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict)),
                ("events", models.JSONField(db_default=models.Value([], models.JSONField()), default=list)),
                ("seen_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="OomKill",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("node", models.CharField(max_length=253)),
                ("pod_uid", models.CharField(max_length=64)),
                ("container", models.CharField(blank=True, max_length=64)),
                ("kills", models.PositiveIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="clusters.cluster"
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["last_at"], name="oom_kills_by_age")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("cluster", "pod_uid", "container"), name="one_count_of_oom_kills"
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="postmortem",
            index=models.Index(fields=["-ended_at", "-id"], name="post_mortem_newest"),
        ),
        migrations.AddIndex(
            model_name="postmortem",
            index=models.Index(fields=["tenant", "-ended_at"], name="post_mortem_tenant"),
        ),
        migrations.AddIndex(
            model_name="postmortem",
            index=models.Index(fields=["holder_id", "-ended_at"], name="post_mortem_holder"),
        ),
        migrations.AddIndex(
            model_name="postmortem",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)), fields=["due_at"], name="post_mortem_due"
            ),
        ),
        migrations.AddIndex(
            model_name="seenpod",
            index=models.Index(fields=["run"], name="seen_pod_run"),
        ),
        migrations.AddIndex(
            model_name="seenpod",
            index=models.Index(fields=["seen_at"], name="seen_pod_age"),
        ),
        migrations.AddConstraint(
            model_name="seenpod",
            constraint=models.UniqueConstraint(fields=("cluster", "uid"), name="one_row_per_seen_pod"),
        ),
    ]
