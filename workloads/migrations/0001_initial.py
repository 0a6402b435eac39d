import uuid

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import accounts.text
import clusters.references

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
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
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
        migrations.CreateModel(
            name="Image",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("slug", models.SlugField(max_length=40, unique=True, verbose_name="slug")),
                (
                    "name",
                    models.CharField(max_length=120, validators=[accounts.text.visible], verbose_name="name"),
                ),
                ("description", models.CharField(blank=True, max_length=240, verbose_name="description")),
                (
                    "reference",
                    models.CharField(
                        max_length=512,
                        validators=[clusters.references.valid_reference],
                        verbose_name="container reference",
                    ),
                ),
                ("offers_jupyter", models.BooleanField(default=True, verbose_name="offers Jupyter")),
                ("offers_ssh", models.BooleanField(default=True, verbose_name="offers SSH")),
                ("uid", models.PositiveIntegerField(default=1000, verbose_name="user id")),
                ("gid", models.PositiveIntegerField(default=1000, verbose_name="group id")),
                ("username", models.CharField(default="jovyan", max_length=32, verbose_name="user name")),
                ("home", models.CharField(default="/home/jovyan", max_length=240, verbose_name="home")),
                ("shell", models.CharField(default="/bin/bash", max_length=240, verbose_name="shell")),
                ("is_active", models.BooleanField(default=True, verbose_name="offered")),
                (
                    "has_code_server",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="Every workspace of it then offers VS Code in the browser. It needs Jupyter, too.",
                        verbose_name="has code-server",
                    ),
                ),
                (
                    "version",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        max_length=40,
                        validators=[accounts.text.visible],
                        verbose_name="version",
                    ),
                ),
                (
                    "cuda_version",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        max_length=16,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^\\d{1,4}(\\.\\d{1,4}){0,3}\\Z",
                                "Write a version in numbers and dots, as 12.4.",
                            )
                        ],
                        verbose_name="CUDA version",
                    ),
                ),
                (
                    "frameworks",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="Short, with versions: PyTorch 2.5, JAX 0.4",
                        max_length=240,
                        validators=[accounts.text.visible],
                        verbose_name="frameworks",
                    ),
                ),
                (
                    "least_driver",
                    models.CharField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="As 550 or 550.54.14. Pools whose nodes all have an older one refuse the image.",
                        max_length=24,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^\\d{1,4}(\\.\\d{1,4}){0,3}\\Z",
                                "Write a version in numbers and dots, as 12.4.",
                            )
                        ],
                        verbose_name="NVIDIA driver, at least",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        blank=True,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "image",
                "verbose_name_plural": "images",
                "db_table": "workspaces_image",
                "ordering": ["slug"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("uid__gte", 1), ("gid__gte", 1)), name="image_never_runs_as_root"
                    ),
                    models.UniqueConstraint(
                        fields=("tenant", "reference"), name="one_own_image_of_a_reference"
                    ),
                ],
            },
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
