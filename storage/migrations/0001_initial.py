import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import accounts.text

# The database follows each change of a volume, also one by an earlier version of Berth that still runs beside this
# one. To change the type of one of these columns later, drop the trigger first and create it again after that.
FOLLOW = """
CREATE FUNCTION storage_span_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE storage_storagespan SET until = GREATEST(since, moment) WHERE volume = OLD.id AND until IS NULL;
    END IF;
    IF TG_OP <> 'DELETE' AND NEW.deleted_at IS NULL THEN
        INSERT INTO storage_storagespan (volume, tenant_id, user_id, mib, since)
        VALUES (NEW.id, NEW.tenant_id, NEW.owner_id, GREATEST(NEW.requested_mib, NEW.size_mib), moment);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER storage_span_first_and_last AFTER INSERT OR DELETE ON storage_volume
FOR EACH ROW EXECUTE FUNCTION storage_span_follow();
CREATE TRIGGER storage_span_next
AFTER UPDATE OF tenant_id, owner_id, requested_mib, size_mib, deleted_at ON storage_volume
FOR EACH ROW WHEN (
    (OLD.tenant_id, OLD.owner_id, GREATEST(OLD.requested_mib, OLD.size_mib), OLD.deleted_at IS NULL)
    IS DISTINCT FROM
    (NEW.tenant_id, NEW.owner_id, GREATEST(NEW.requested_mib, NEW.size_mib), NEW.deleted_at IS NULL)
) EXECUTE FUNCTION storage_span_follow();
"""
UNFOLLOW = """
DROP TRIGGER storage_span_next ON storage_volume;
DROP TRIGGER storage_span_first_and_last ON storage_volume;
DROP FUNCTION storage_span_follow();
"""


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("clusters", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Connection",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("name", models.CharField(max_length=40, verbose_name="name")),
                ("endpoint", models.URLField(max_length=253, verbose_name="endpoint")),
                ("bucket", models.CharField(max_length=63, verbose_name="bucket")),
                ("keys", models.TextField(help_text="Access key and secret key as JSON, encrypted.")),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="created"),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="connections",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="connections",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "connection",
                "verbose_name_plural": "connections",
                "ordering": ["name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="ConnectionUse",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("holder", models.UUIDField(db_index=True)),
                (
                    "connection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uses",
                        to="storage.connection",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Snapshot",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("number", models.PositiveIntegerField(null=True, verbose_name="version")),
                (
                    "note",
                    models.CharField(
                        blank=True, max_length=200, validators=[accounts.text.visible], verbose_name="note"
                    ),
                ),
                ("is_passing", models.BooleanField(default=False)),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("pending", "being created"),
                            ("ready", "ready"),
                            ("growing", "growing"),
                            ("in_bin", "in the bin"),
                            ("deleting", "being deleted"),
                            ("failed", "failed"),
                            ("deleted", "deleted"),
                        ],
                        default="pending",
                        max_length=8,
                        verbose_name="phase",
                    ),
                ),
                ("problem", models.CharField(blank=True, max_length=64)),
                ("problem_data", models.JSONField(default=dict)),
                ("size_mib", models.PositiveIntegerField(default=0, verbose_name="size (MiB)")),
                ("content", models.CharField(blank=True, max_length=253)),
                ("handle", models.CharField(blank=True, max_length=1024)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                ("deleted_at", models.DateTimeField(null=True, verbose_name="deleted at")),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="by",
                    ),
                ),
            ],
            options={
                "verbose_name": "snapshot",
                "verbose_name_plural": "snapshots",
                "ordering": ["-created_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="StorageSpan",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("volume", models.UUIDField()),
                ("mib", models.PositiveBigIntegerField(verbose_name="size (MiB)")),
                ("since", models.DateTimeField(verbose_name="since")),
                ("until", models.DateTimeField(null=True, verbose_name="until")),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "entry of the ledger of storage",
                "verbose_name_plural": "ledger of storage",
                "ordering": ["-since", "-id"],
            },
        ),
        migrations.CreateModel(
            name="Volume",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "name",
                    models.CharField(max_length=63, validators=[accounts.text.visible], verbose_name="name"),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("home", "home"),
                            ("disk", "local disk"),
                            ("dataset", "dataset"),
                            ("scratch", "scratch"),
                        ],
                        max_length=8,
                        verbose_name="kind",
                    ),
                ),
                (
                    "is_main",
                    models.BooleanField(
                        db_default=False, default=False, verbose_name="mounted by new workspaces"
                    ),
                ),
                ("made_for", models.UUIDField(db_index=True, null=True)),
                ("claim_name", models.CharField(blank=True, db_default="", default="", max_length=253)),
                ("is_version", models.BooleanField(db_default=False, default=False)),
                (
                    "shared",
                    models.CharField(
                        choices=[
                            ("no", "nobody else"),
                            ("read", "its tenant, to read"),
                            ("write", "its tenant, to read and write"),
                        ],
                        default="no",
                        max_length=8,
                        verbose_name="shared with",
                    ),
                ),
                ("requested_mib", models.PositiveIntegerField(verbose_name="requested size (MiB)")),
                (
                    "adoption",
                    models.CharField(
                        blank=True, db_default="", default="", max_length=9, verbose_name="adoption"
                    ),
                ),
                ("inspection", models.JSONField(null=True, verbose_name="inspection")),
                ("bin_until", models.DateTimeField(null=True, verbose_name="deleted for good at")),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("pending", "being created"),
                            ("ready", "ready"),
                            ("growing", "growing"),
                            ("in_bin", "in the bin"),
                            ("deleting", "being deleted"),
                            ("failed", "failed"),
                            ("deleted", "deleted"),
                        ],
                        default="pending",
                        max_length=8,
                        verbose_name="phase",
                    ),
                ),
                ("problem", models.CharField(blank=True, max_length=64)),
                ("problem_data", models.JSONField(default=dict)),
                ("size_mib", models.PositiveIntegerField(default=0, verbose_name="size (MiB)")),
                ("storage_class", models.CharField(blank=True, max_length=253, verbose_name="storage class")),
                (
                    "access",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("rwx", "several nodes at once"),
                            ("rwo", "one node at a time"),
                            ("rwop", "one run at a time"),
                            ("rox", "several nodes at once, to read"),
                        ],
                        max_length=4,
                        verbose_name="access",
                    ),
                ),
                ("is_enforced", models.BooleanField(default=True, verbose_name="size is enforced")),
                ("can_grow", models.BooleanField(default=True, verbose_name="can grow")),
                ("bound_to", models.CharField(blank=True, max_length=253, verbose_name="persistent volume")),
                ("affinity", models.JSONField(default=dict)),
                ("driver", models.CharField(blank=True, db_default="", default="", max_length=253)),
                (
                    "attached_to",
                    models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
                ),
                ("used_mib", models.PositiveBigIntegerField(null=True, verbose_name="used (MiB)")),
                ("used_of_mib", models.PositiveBigIntegerField(null=True)),
                ("used_at", models.DateTimeField(null=True, verbose_name="used space measured at")),
                ("used_warned", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                ("changed_at", models.DateTimeField(auto_now=True)),
                ("deleted_at", models.DateTimeField(null=True, verbose_name="deleted at")),
                ("dirty_since", models.DateTimeField(null=True)),
                ("dirty_marks", models.PositiveIntegerField(default=0)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="clusters.cluster",
                        verbose_name="cluster",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="volumes",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="copies",
                        to="storage.snapshot",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="volumes",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "volume",
                "verbose_name_plural": "volumes",
                "ordering": ["-created_at", "id"],
            },
        ),
        migrations.AddField(
            model_name="snapshot",
            name="volume",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="snapshots",
                to="storage.volume",
                verbose_name="volume",
            ),
        ),
        migrations.CreateModel(
            name="Mount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("holder", models.UUIDField(db_index=True)),
                ("path", models.CharField(max_length=240)),
                ("read_only", models.BooleanField()),
                ("version", models.CharField(blank=True, db_default="", default="", max_length=10)),
                (
                    "turn",
                    models.CharField(
                        blank=True,
                        choices=[("coming", "Coming"), ("going", "Going")],
                        db_default="",
                        default="",
                        max_length=6,
                    ),
                ),
                (
                    "volume",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="mounts",
                        to="storage.volume",
                    ),
                ),
            ],
            options={
                "ordering": ["holder", "path"],
            },
        ),
        migrations.CreateModel(
            name="FilesSession",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("writes", models.BooleanField()),
                ("inspects", models.BooleanField(db_default=False, default=False)),
                ("token", models.TextField()),
                (
                    "phase",
                    models.CharField(
                        choices=[
                            ("starting", "starting"),
                            ("ready", "ready"),
                            ("ending", "ending"),
                            ("ended", "ended"),
                        ],
                        default="starting",
                        max_length=8,
                    ),
                ),
                ("problem", models.CharField(blank=True, max_length=64)),
                ("problem_data", models.JSONField(default=dict)),
                ("host", models.CharField(blank=True, max_length=253)),
                ("used_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "volume",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="files_sessions",
                        to="storage.volume",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "id"],
            },
        ),
        migrations.AddConstraint(
            model_name="connection",
            constraint=models.UniqueConstraint(
                fields=("tenant", "owner", "name"), name="one_connection_of_a_name"
            ),
        ),
        migrations.AddIndex(
            model_name="storagespan",
            index=models.Index(fields=["tenant", "until", "since"], name="span_of_tenant"),
        ),
        migrations.AddConstraint(
            model_name="storagespan",
            constraint=models.UniqueConstraint(
                condition=models.Q(("until__isnull", True)),
                fields=("volume",),
                name="one_open_span_per_volume",
            ),
        ),
        migrations.AddConstraint(
            model_name="storagespan",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("until__isnull", True), ("until__gte", models.F("since")), _connector="OR"
                ),
                name="span_ends_after_its_start",
            ),
        ),
        migrations.AddIndex(
            model_name="volume",
            index=models.Index(fields=["-created_at", "-id"], name="volume_newest"),
        ),
        migrations.AddIndex(
            model_name="volume",
            index=models.Index(
                condition=models.Q(("dirty_since__isnull", False)), fields=["cluster"], name="volume_marked"
            ),
        ),
        migrations.AddIndex(
            model_name="volume",
            index=models.Index(
                condition=models.Q(("bin_until__isnull", False)), fields=["bin_until"], name="volume_in_bin"
            ),
        ),
        migrations.AddConstraint(
            model_name="volume",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("bin_until__isnull", True), ("deleted_at__isnull", True), ("is_version", False)
                ),
                fields=("tenant", "owner", "name"),
                name="one_volume_of_a_name_per_person_and_tenant",
            ),
        ),
        migrations.AddConstraint(
            model_name="volume",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("bin_until__isnull", True), ("deleted_at__isnull", True), ("is_main", True)
                ),
                fields=("tenant", "owner", "cluster"),
                name="one_main_home_per_person_tenant_and_cluster",
            ),
        ),
        migrations.AddIndex(
            model_name="snapshot",
            index=models.Index(
                condition=models.Q(("phase__in", ("pending", "deleting"))),
                fields=["volume"],
                name="snapshot_moving",
            ),
        ),
        migrations.AddConstraint(
            model_name="snapshot",
            constraint=models.UniqueConstraint(
                fields=("volume", "number"), name="one_version_of_a_number_per_volume"
            ),
        ),
        migrations.AddConstraint(
            model_name="mount",
            constraint=models.UniqueConstraint(
                condition=models.Q(("turn", "coming"), _negated=True),
                fields=("holder", "volume"),
                name="one_mount_per_volume_now",
            ),
        ),
        migrations.AddConstraint(
            model_name="mount",
            constraint=models.UniqueConstraint(
                condition=models.Q(("turn", "going"), _negated=True),
                fields=("holder", "volume"),
                name="one_mount_per_volume_next",
            ),
        ),
        migrations.AddConstraint(
            model_name="mount",
            constraint=models.UniqueConstraint(
                condition=models.Q(("turn", "coming"), _negated=True),
                fields=("holder", "path"),
                name="one_mount_per_path_now",
            ),
        ),
        migrations.AddConstraint(
            model_name="mount",
            constraint=models.UniqueConstraint(
                condition=models.Q(("turn", "going"), _negated=True),
                fields=("holder", "path"),
                name="one_mount_per_path_next",
            ),
        ),
        migrations.AddIndex(
            model_name="filessession",
            index=models.Index(
                condition=models.Q(("ended_at__isnull", True)), fields=["by"], name="files_session_open"
            ),
        ),
        migrations.AddConstraint(
            model_name="filessession",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at__isnull", True)),
                fields=("volume",),
                name="one_files_session_per_volume",
            ),
        ),
        migrations.RunSQL(FOLLOW, UNFOLLOW),
    ]
