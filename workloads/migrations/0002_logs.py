"""Logs: followed containers, chunks of lines in a table with a partition for each day of expiry, limits of tenants."""

import django.db.models.deletion
from django.db import migrations, models

CHUNKS = """
    CREATE TABLE workloads_logchunk (
        expires_on date NOT NULL,
        stream_id bigint NOT NULL,
        first_line bigint NOT NULL,
        last_line bigint NOT NULL,
        tenant_id uuid NOT NULL,
        holder_id uuid NOT NULL,
        first_at timestamptz NOT NULL,
        last_at timestamptz NOT NULL,
        text_bytes integer NOT NULL,
        stored_bytes integer NOT NULL,
        grams bytea NOT NULL,
        lines bytea NOT NULL,
        PRIMARY KEY (expires_on, stream_id, first_line)
    ) PARTITION BY RANGE (expires_on);
    ALTER TABLE workloads_logchunk ALTER COLUMN grams SET STORAGE PLAIN, ALTER COLUMN lines SET STORAGE EXTERNAL
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0001_initial"),
        ("workloads", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="LogLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "days",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        help_text="Logs are deleted so many days after they were written. Empty: the installation's setting.",
                        null=True,
                        verbose_name="days",
                    ),
                ),
                (
                    "size_mib",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Compressed. Beyond it the oldest are deleted. Empty: the installation's setting.",
                        null=True,
                        verbose_name="size (MiB)",
                    ),
                ),
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="log_limit",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "retention of logs",
                "verbose_name_plural": "retention of logs",
            },
        ),
        migrations.CreateModel(
            name="LogStream",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("holder_kind", models.CharField(max_length=10)),
                ("holder_id", models.UUIDField()),
                ("run", models.UUIDField()),
                ("index", models.PositiveIntegerField(default=0)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("namespace", models.CharField(max_length=63)),
                ("pod", models.CharField(max_length=253)),
                ("pod_uid", models.CharField(max_length=64)),
                ("container", models.CharField(max_length=63)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(help_text="When its last line was read.", null=True)),
                (
                    "lines",
                    models.BigIntegerField(default=0, help_text="Lines that were stored, numbered from 1."),
                ),
                (
                    "dropped",
                    models.BigIntegerField(default=0, help_text="Lines beyond the pace of one container."),
                ),
                ("last_at", models.DateTimeField(null=True)),
                ("last_ns", models.BigIntegerField(default=0)),
                ("dropped_until_ns", models.BigIntegerField(default=0)),
                ("chunk_expires_on", models.DateField(null=True)),
                ("chunk_first_line", models.BigIntegerField(default=0)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounts.tenant"
                    ),
                ),
            ],
            options={
                "verbose_name": "log of a container",
                "verbose_name_plural": "logs of containers",
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(CHUNKS, "DROP TABLE workloads_logchunk")],
            state_operations=[
                migrations.CreateModel(
                    name="LogChunk",
                    fields=[
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "expires_on",
                                "stream",
                                "first_line",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        ("expires_on", models.DateField()),
                        ("first_line", models.BigIntegerField()),
                        ("last_line", models.BigIntegerField()),
                        ("tenant_id", models.UUIDField()),
                        ("holder_id", models.UUIDField()),
                        ("first_at", models.DateTimeField()),
                        ("last_at", models.DateTimeField()),
                        ("text_bytes", models.PositiveIntegerField()),
                        (
                            "stored_bytes",
                            models.PositiveIntegerField(help_text="What it takes in the table, roughly."),
                        ),
                        (
                            "grams",
                            models.BinaryField(
                                help_text="Bits of the byte sequences in its words: chunks.py."
                            ),
                        ),
                        ("lines", models.BinaryField(help_text="Times and texts of its lines: chunks.py.")),
                        (
                            "stream",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="chunks",
                                to="workloads.logstream",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name": "part of a log",
                        "verbose_name_plural": "parts of logs",
                    },
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="logstream",
            index=models.Index(fields=["holder_id", "index", "attempt"], name="log_of_holder"),
        ),
        migrations.AddIndex(
            model_name="logstream",
            index=models.Index(fields=["tenant", "created_at"], name="log_of_tenant"),
        ),
        migrations.AddConstraint(
            model_name="logstream",
            constraint=models.UniqueConstraint(fields=("pod_uid", "container"), name="one_log_per_container"),
        ),
        migrations.AddIndex(
            model_name="logchunk",
            index=models.Index(fields=["stream", "last_line"], name="chunk_of_log"),
        ),
        migrations.AddIndex(
            model_name="logchunk",
            index=models.Index(fields=["holder_id", "last_at"], name="chunk_of_holder"),
        ),
        migrations.AddIndex(
            model_name="logchunk",
            index=models.Index(
                fields=["tenant_id", "last_at"], include=("stored_bytes",), name="chunk_of_tenant"
            ),
        ),
    ]
