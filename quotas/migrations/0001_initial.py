import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("clusters", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # Where the next claim stands in the queue: `admission.request` draws from it.
        migrations.RunSQL("CREATE SEQUENCE quotas_claim_place", "DROP SEQUENCE quotas_claim_place"),
        migrations.CreateModel(
            name="Pool",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("slug", models.SlugField(max_length=40, unique=True, verbose_name="slug")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
                (
                    "node_labels",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="A node belongs to the pool when it has all of these.",
                        verbose_name="node labels",
                    ),
                ),
                (
                    "sharing",
                    models.CharField(
                        choices=[
                            ("exclusive", "whole GPUs"),
                            ("mig", "MIG instances"),
                            ("time-slicing", "time-slicing"),
                            ("mps", "MPS"),
                            ("hami", "HAMi"),
                            ("gpu-manager", "gpu-manager"),
                        ],
                        default="exclusive",
                        max_length=12,
                        verbose_name="sharing",
                    ),
                ),
                (
                    "resource_name",
                    models.CharField(
                        blank=True,
                        default="nvidia.com/gpu",
                        help_text="The extended resource that one unit is; empty: a pool without GPUs.",
                        max_length=120,
                        verbose_name="resource",
                    ),
                ),
                (
                    "units_per_gpu",
                    models.PositiveIntegerField(
                        default=1,
                        help_text="1 for whole GPUs; instances or replicas else.",
                        verbose_name="units per GPU",
                    ),
                ),
                ("gpu_product", models.CharField(blank=True, max_length=120, verbose_name="GPU")),
                (
                    "gpu_memory_mib",
                    models.PositiveIntegerField(blank=True, null=True, verbose_name="memory of a GPU (MiB)"),
                ),
                (
                    "unit_memory_mib",
                    models.PositiveIntegerField(blank=True, null=True, verbose_name="memory of a unit (MiB)"),
                ),
                (
                    "compute_capability",
                    models.CharField(blank=True, max_length=8, verbose_name="compute capability"),
                ),
                ("ecc", models.BooleanField(blank=True, null=True, verbose_name="ECC")),
                ("tolerations", models.JSONField(blank=True, default=list, verbose_name="tolerations")),
                ("runtime_class", models.CharField(blank=True, max_length=253, verbose_name="runtime class")),
                (
                    "cpu_overcommit",
                    models.DecimalField(
                        decimal_places=2, default=1, max_digits=5, verbose_name="CPU overcommit"
                    ),
                ),
                (
                    "memory_overcommit",
                    models.DecimalField(
                        decimal_places=2, default=1, max_digits=5, verbose_name="memory overcommit"
                    ),
                ),
                ("pass_queued_at", models.DateTimeField(editable=False, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pools",
                        to="clusters.cluster",
                    ),
                ),
            ],
            options={
                "verbose_name": "pool",
                "verbose_name_plural": "pools",
                "ordering": ["slug"],
            },
        ),
        migrations.CreateModel(
            name="Flavor",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("slug", models.SlugField(max_length=40, unique=True, verbose_name="slug")),
                ("name", models.CharField(max_length=120, verbose_name="name")),
                (
                    "units",
                    models.PositiveIntegerField(
                        default=0, help_text="GPUs, instances or replicas.", verbose_name="units"
                    ),
                ),
                ("cpu_millicores", models.PositiveIntegerField(verbose_name="CPU (millicores)")),
                ("memory_mib", models.PositiveIntegerField(verbose_name="memory (MiB)")),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="flavors", to="quotas.pool"
                    ),
                ),
            ],
            options={
                "verbose_name": "flavor",
                "verbose_name_plural": "flavors",
                "ordering": ["pool__slug", "units", "cpu_millicores"],
            },
        ),
        migrations.CreateModel(
            name="Claim",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "holder_kind",
                    models.CharField(choices=[("workspace", "workspace"), ("job", "job")], max_length=12),
                ),
                ("holder_id", models.UUIDField()),
                ("units", models.PositiveIntegerField()),
                (
                    "cpu_millicores",
                    models.PositiveIntegerField(help_text="What the pod requests, after overcommit."),
                ),
                (
                    "memory_mib",
                    models.PositiveIntegerField(help_text="What the pod requests, after overcommit."),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("admitted", "admitted"), ("released", "released")],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("priority", models.SmallIntegerField(default=0)),
                ("place", models.BigIntegerField()),
                (
                    "attempt",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="How often it was sent back to the queue."
                    ),
                ),
                ("not_before", models.DateTimeField(null=True)),
                (
                    "reason_code",
                    models.CharField(blank=True, help_text="Why it waits, as last decided.", max_length=64),
                ),
                ("reason_data", models.JSONField(default=dict)),
                ("node", models.CharField(blank=True, help_text="Chosen at admission.", max_length=253)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("admitted_at", models.DateTimeField(null=True)),
                ("released_at", models.DateTimeField(null=True)),
                ("end_unproven_since", models.DateTimeField(null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="claims",
                        to="accounts.tenant",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="claims",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="claims", to="quotas.pool"
                    ),
                ),
            ],
            options={
                "verbose_name": "claim",
                "verbose_name_plural": "claims",
            },
        ),
        migrations.CreateModel(
            name="Quota",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("nominal_gpus", models.PositiveIntegerField(default=0, verbose_name="nominal GPUs")),
                (
                    "borrowing_limit_gpus",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Not yet lent: the nominal GPUs are the limit.",
                        verbose_name="may borrow",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="quotas", to="quotas.pool"
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quotas",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "quota",
                "verbose_name_plural": "quotas",
                "ordering": ["tenant__slug", "pool__slug"],
            },
        ),
        migrations.CreateModel(
            name="TenantLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "cpu_millicores",
                    models.PositiveIntegerField(blank=True, null=True, verbose_name="CPU (millicores)"),
                ),
                (
                    "memory_mib",
                    models.PositiveIntegerField(blank=True, null=True, verbose_name="memory (MiB)"),
                ),
                (
                    "workspaces",
                    models.PositiveIntegerField(blank=True, null=True, verbose_name="workspaces at once"),
                ),
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="limit",
                        to="accounts.tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "limit of a tenant",
                "verbose_name_plural": "limits of tenants",
                "ordering": ["tenant__slug"],
            },
        ),
        migrations.AddConstraint(
            model_name="pool",
            constraint=models.CheckConstraint(
                condition=models.Q(("units_per_gpu__gte", 1)), name="pool_units_per_gpu_at_least_1"
            ),
        ),
        migrations.AddConstraint(
            model_name="pool",
            constraint=models.CheckConstraint(
                condition=models.Q(("cpu_overcommit__gte", 1), ("memory_overcommit__gte", 1)),
                name="pool_overcommit_at_least_1",
            ),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(fields=["pool", "state", "-priority", "place"], name="claim_queue"),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(fields=["tenant", "pool", "state"], name="claim_quota"),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(fields=["holder_id"], name="claim_holder"),
        ),
        migrations.AddConstraint(
            model_name="claim",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "released"), _negated=True),
                fields=("holder_kind", "holder_id"),
                name="one_live_claim_per_holder",
            ),
        ),
        migrations.AddConstraint(
            model_name="claim",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("released_at__isnull", False), ("state", "released")),
                    models.Q(models.Q(("state", "released"), _negated=True), ("released_at__isnull", True)),
                    _connector="OR",
                ),
                name="released_at_when_released",
            ),
        ),
        migrations.AddConstraint(
            model_name="claim",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "admitted"), _negated=True),
                    models.Q(("admitted_at__isnull", False), models.Q(("node", ""), _negated=True)),
                    _connector="OR",
                ),
                name="admitted_to_a_node_at_a_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="claim",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "waiting"), _negated=True),
                    models.Q(("admitted_at__isnull", True), ("node", "")),
                    _connector="OR",
                ),
                name="waiting_has_no_node",
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.UniqueConstraint(
                fields=("tenant", "pool"), name="one_quota_per_tenant_and_pool"
            ),
        ),
    ]
