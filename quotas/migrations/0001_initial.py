import uuid
from decimal import Decimal

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import accounts.text
import clusters.references


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("accounts", "0001_initial"),
        ("clusters", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # Place of the next claim in the queue: `admission.request` draws from it.
        migrations.RunSQL("CREATE SEQUENCE quotas_claim_place", "DROP SEQUENCE quotas_claim_place"),
        migrations.CreateModel(
            name="Booking",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                ("title", models.CharField(max_length=120, verbose_name="title")),
                ("starts_at", models.DateTimeField(verbose_name="from")),
                ("ends_at", models.DateTimeField(verbose_name="to")),
                ("places", models.PositiveIntegerField(default=1, verbose_name="places")),
                ("units_each", models.PositiveIntegerField(verbose_name="units per place")),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                ("cancelled_at", models.DateTimeField(null=True, verbose_name="cancelled at")),
                (
                    "created_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="booked by",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="bookings",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
            ],
            options={
                "verbose_name": "booking",
                "verbose_name_plural": "bookings",
                "ordering": ["starts_at", "id"],
            },
        ),
        migrations.CreateModel(
            name="Budget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "gpu_hours",
                    models.DecimalField(decimal_places=2, max_digits=10, verbose_name="GPU-hours a month"),
                ),
                (
                    "grace_minutes",
                    models.PositiveIntegerField(
                        default=60,
                        help_text="How long workspaces keep running after the budget is used up. Files stay.",
                        verbose_name="grace (minutes)",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="budgets",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: the tenant as a whole.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="person",
                    ),
                ),
            ],
            options={
                "verbose_name": "budget",
                "verbose_name_plural": "budgets",
                "ordering": ["tenant__slug", "user__username"],
            },
        ),
        migrations.CreateModel(
            name="BudgetMonth",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("month", models.DateField(help_text="Its first day.", verbose_name="month")),
                (
                    "added_gpu_hours",
                    models.DecimalField(
                        decimal_places=2, default=Decimal("0"), max_digits=10, verbose_name="added GPU-hours"
                    ),
                ),
                (
                    "told_percent",
                    models.PositiveSmallIntegerField(
                        default=0,
                        help_text="80, 95 or 100: the latest notice sent.",
                        verbose_name="percent told",
                    ),
                ),
                ("spent_at", models.DateTimeField(null=True, verbose_name="spent at")),
                (
                    "budget",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="months", to="quotas.budget"
                    ),
                ),
            ],
            options={
                "ordering": ["-month"],
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
                ("part", models.PositiveIntegerField(db_default=0, default=0)),
                ("members", models.PositiveIntegerField(db_default=1, default=1, verbose_name="nodes")),
                ("units", models.PositiveIntegerField(verbose_name="units")),
                (
                    "cpu_millicores",
                    models.PositiveIntegerField(
                        help_text="What the pod requests, after overcommit.", verbose_name="CPU (millicores)"
                    ),
                ),
                (
                    "memory_mib",
                    models.PositiveIntegerField(
                        help_text="What the pod requests, after overcommit.", verbose_name="memory (MiB)"
                    ),
                ),
                ("cards", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("card_memory_mib", models.PositiveIntegerField(null=True)),
                (
                    "card_cores",
                    models.PositiveSmallIntegerField(help_text="Percent of a GPU's cores.", null=True),
                ),
                ("extra", models.JSONField(db_default={}, default=dict)),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "waiting"), ("admitted", "admitted"), ("released", "released")],
                        default="waiting",
                        max_length=8,
                        verbose_name="state",
                    ),
                ),
                ("priority", models.SmallIntegerField(default=0, verbose_name="priority")),
                ("place", models.BigIntegerField()),
                (
                    "attempt",
                    models.PositiveSmallIntegerField(
                        default=0,
                        help_text="Number of times it was sent back to the queue.",
                        verbose_name="attempt",
                    ),
                ),
                ("returns_first", models.BooleanField(db_default=False, default=False)),
                ("not_before", models.DateTimeField(null=True)),
                (
                    "reason_code",
                    models.CharField(blank=True, help_text="Why it waits, as last decided.", max_length=64),
                ),
                ("reason_data", models.JSONField(default=dict)),
                ("position", models.PositiveIntegerField(null=True)),
                ("units_ahead", models.PositiveIntegerField(null=True)),
                ("estimated_from", models.DateTimeField(null=True)),
                ("estimated_to", models.DateTimeField(null=True)),
                ("told_from", models.DateTimeField(null=True)),
                ("told_to", models.DateTimeField(null=True)),
                (
                    "max_runtime_minutes",
                    models.PositiveIntegerField(
                        help_text="The lifetime that it asks for. Empty: it runs until stopped.", null=True
                    ),
                ),
                (
                    "node",
                    models.CharField(
                        blank=True, help_text="Chosen at admission.", max_length=253, verbose_name="node"
                    ),
                ),
                (
                    "nodes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253),
                        blank=True,
                        db_default=[],
                        default=list,
                        size=None,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True, verbose_name="created at")),
                ("admitted_at", models.DateTimeField(null=True, verbose_name="admitted at")),
                ("released_at", models.DateTimeField(null=True, verbose_name="released at")),
                ("ends_at", models.DateTimeField(null=True, verbose_name="ends at")),
                ("expected_end_at", models.DateTimeField(null=True)),
                ("must_end_at", models.DateTimeField(null=True)),
                ("reclaim_at", models.DateTimeField(null=True)),
                ("reclaim_code", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("reclaim_for", models.UUIDField(null=True)),
                ("settled_until", models.DateTimeField(null=True)),
                ("budget_ends_at", models.DateTimeField(null=True)),
                ("end_unproven_since", models.DateTimeField(null=True, verbose_name="end unproven since")),
                (
                    "booking",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="claims",
                        to="quotas.booking",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="claims",
                        to="accounts.tenant",
                        verbose_name="tenant",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="claims",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "claim",
                "verbose_name_plural": "claims",
            },
        ),
        migrations.CreateModel(
            name="Pool",
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
                    "match_product",
                    models.CharField(
                        blank=True,
                        help_text="As GPU Feature Discovery names it.",
                        max_length=120,
                        verbose_name="GPU product",
                    ),
                ),
                (
                    "match_gpu_memory_mib",
                    models.PositiveIntegerField(
                        blank=True, null=True, verbose_name="GPU memory at least (MiB)"
                    ),
                ),
                (
                    "match_compute_capability",
                    models.CharField(
                        blank=True,
                        help_text="As 8.6.",
                        max_length=8,
                        verbose_name="compute capability at least",
                    ),
                ),
                ("match_ecc", models.BooleanField(blank=True, null=True, verbose_name="ECC")),
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
                (
                    "mig_profile",
                    models.CharField(
                        blank=True, help_text="As 1g.10gb.", max_length=32, verbose_name="MIG profile"
                    ),
                ),
                (
                    "one_unit_each",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="A run gets one replica at most, as the device plugin's failRequestsGreaterThanOne has it.",
                        verbose_name="one unit each",
                    ),
                ),
                (
                    "extra_resources",
                    models.JSONField(
                        blank=True,
                        db_default={},
                        default=dict,
                        help_text="What each pod requests besides, for RDMA: so many for each of its GPUs, or parts of one.",
                        verbose_name="resources beside GPUs",
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
                (
                    "image_pull_secrets",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="In addition to those of the cluster.",
                        verbose_name="image pull secrets",
                    ),
                ),
                (
                    "driver_path",
                    models.CharField(
                        blank=True,
                        help_text="For nodes without the NVIDIA runtime: mounted read-only. Empty on any node of today.",
                        max_length=1024,
                        verbose_name="driver's path on the nodes",
                    ),
                ),
                (
                    "weight",
                    models.DecimalField(
                        db_default=Decimal("1"),
                        decimal_places=2,
                        default=Decimal("1"),
                        help_text="What a GPU-hour of it counts against budgets and fair shares.",
                        max_digits=6,
                        verbose_name="weight",
                    ),
                ),
                (
                    "is_open",
                    models.BooleanField(
                        db_default=True,
                        default=True,
                        help_text="If out of use, nothing new starts here. Running workspaces are not affected; requests keep waiting.",
                        verbose_name="in use",
                    ),
                ),
                ("pass_queued_at", models.DateTimeField(editable=False, null=True)),
                ("forecast_early", models.FloatField(db_default=1, default=1, editable=False)),
                ("forecast_late", models.FloatField(db_default=1, default=1, editable=False)),
                ("forecast_at", models.DateTimeField(editable=False, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="pools",
                        to="clusters.cluster",
                        verbose_name="cluster",
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
            name="LedgerEntry",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField(verbose_name="day")),
                ("microseconds", models.PositiveBigIntegerField(default=0)),
                ("units", models.PositiveIntegerField(verbose_name="units")),
                ("units_per_gpu", models.PositiveIntegerField()),
                (
                    "weight",
                    models.DecimalField(
                        decimal_places=2, default=Decimal("1"), max_digits=6, verbose_name="weight"
                    ),
                ),
                (
                    "claim",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="ledger", to="quotas.claim"
                    ),
                ),
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
                        verbose_name="user",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="quotas.pool",
                        verbose_name="pool",
                    ),
                ),
            ],
            options={
                "verbose_name": "entry of the ledger",
                "verbose_name_plural": "ledger",
                "ordering": ["-day", "-id"],
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
                (
                    "name",
                    models.CharField(max_length=120, validators=[accounts.text.visible], verbose_name="name"),
                ),
                (
                    "units",
                    models.PositiveIntegerField(
                        default=0, help_text="GPUs, instances or replicas.", verbose_name="units"
                    ),
                ),
                (
                    "cpu_millicores",
                    models.PositiveIntegerField(
                        validators=[django.core.validators.MinValueValidator(100)],
                        verbose_name="CPU (millicores)",
                    ),
                ),
                (
                    "memory_mib",
                    models.PositiveIntegerField(
                        validators=[django.core.validators.MinValueValidator(128)],
                        verbose_name="memory (MiB)",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="flavors",
                        to="quotas.pool",
                        verbose_name="pool",
                    ),
                ),
            ],
            options={
                "verbose_name": "flavor",
                "verbose_name_plural": "flavors",
                "ordering": ["pool__slug", "units", "cpu_millicores"],
            },
        ),
        migrations.AddField(
            model_name="claim",
            name="pool",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="claims",
                to="quotas.pool",
                verbose_name="pool",
            ),
        ),
        migrations.AddField(
            model_name="booking",
            name="pool",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="bookings",
                to="quotas.pool",
                verbose_name="pool",
            ),
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
                (
                    "nominal_gpus",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="Whole GPUs that the tenant may use of this pool at once.",
                        verbose_name="own GPUs",
                    ),
                ),
                (
                    "borrowing_limit_gpus",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="GPUs beyond its own, while others do not use them. They are reclaimed with a warning.",
                        verbose_name="may borrow",
                    ),
                ),
                (
                    "weight",
                    models.PositiveIntegerField(
                        db_default=1,
                        default=1,
                        help_text="Its weight when several tenants wait: 2 gets twice as much as 1 over time.",
                        verbose_name="weight",
                    ),
                ),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quotas",
                        to="quotas.pool",
                        verbose_name="pool",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="quotas",
                        to="accounts.tenant",
                        verbose_name="tenant",
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
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="1000 are one core. Empty: no limit.",
                        null=True,
                        verbose_name="CPU (millicores)",
                    ),
                ),
                (
                    "memory_mib",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="1024 are one GiB. Empty: no limit.",
                        null=True,
                        verbose_name="memory (MiB)",
                    ),
                ),
                (
                    "workspaces",
                    models.PositiveIntegerField(
                        blank=True, help_text="Empty: no limit.", null=True, verbose_name="workspaces at once"
                    ),
                ),
                (
                    "storage_mib",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="All volumes together. Empty: no limit.",
                        null=True,
                        verbose_name="storage (MiB)",
                    ),
                ),
                (
                    "homes_mib",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="All homes together. Empty: no limit.",
                        null=True,
                        verbose_name="homes (MiB)",
                    ),
                ),
                (
                    "disks_mib",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="All local disks together. Empty: no limit.",
                        null=True,
                        verbose_name="local disks (MiB)",
                    ),
                ),
                (
                    "datasets_mib",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="All datasets together, with their mounted versions. Empty: no limit.",
                        null=True,
                        verbose_name="datasets (MiB)",
                    ),
                ),
                (
                    "longest_runtime_minutes",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Longest time of a run without an extension. Empty: no limit.",
                        null=True,
                        verbose_name="longest runtime (minutes)",
                    ),
                ),
                (
                    "person_gpus",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Over all pools. Empty: no limit.",
                        null=True,
                        verbose_name="GPUs of one person",
                    ),
                ),
                (
                    "person_workspaces",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Empty: no limit.",
                        null=True,
                        verbose_name="workspaces of one person at once",
                    ),
                ),
                (
                    "person_storage_mib",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="All volumes that one person has in the tenant. Empty: no limit.",
                        null=True,
                        verbose_name="storage of one person (MiB)",
                    ),
                ),
                (
                    "image_prefixes",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        help_text="People may run images from here, by reference. One host, or host and path, per line: registry.example/team/ allows all under that path. Images without a host are docker.io/library/. Empty: only images of the catalogue.",
                        validators=[clusters.references.valid_prefixes],
                        verbose_name="registries of own images",
                    ),
                ),
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="limit",
                        to="accounts.tenant",
                        verbose_name="tenant",
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
            model_name="budget",
            constraint=models.UniqueConstraint(
                fields=("tenant", "user"), name="one_budget_per_tenant_and_person", nulls_distinct=False
            ),
        ),
        migrations.AddConstraint(
            model_name="budget",
            constraint=models.CheckConstraint(
                condition=models.Q(("gpu_hours__gte", 0)), name="budget_not_negative"
            ),
        ),
        migrations.AddConstraint(
            model_name="budgetmonth",
            constraint=models.UniqueConstraint(
                fields=("budget", "month"), name="one_row_per_budget_and_month"
            ),
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
        migrations.AddConstraint(
            model_name="pool",
            constraint=models.CheckConstraint(
                condition=models.Q(("weight__gte", 0)), name="pool_weight_not_negative"
            ),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(fields=["day", "tenant"], name="ledger_day_tenant"),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(fields=["pool", "day"], name="ledger_pool_day"),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(fields=["tenant", "user", "day"], name="ledger_person_day"),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=models.UniqueConstraint(fields=("claim", "day"), name="one_entry_per_claim_and_day"),
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
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(fields=["-created_at", "-id"], name="claim_newest"),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("reclaim_at__isnull", False), ("state", "admitted")),
                fields=["reclaim_at"],
                name="claim_asked_back",
            ),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(
                    ("admitted_at__isnull", False), ("settled_until__isnull", True), ("state", "released")
                ),
                fields=["released_at"],
                name="claim_unsettled",
            ),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("admitted_at__isnull", False), ("state", "released")),
                fields=["pool", "-released_at"],
                name="claim_lengths",
            ),
        ),
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(("admitted_at__isnull", False)),
                fields=["released_at"],
                name="claim_runs_by_end",
            ),
        ),
        migrations.AddConstraint(
            model_name="claim",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "released"), _negated=True),
                fields=("holder_kind", "holder_id", "part"),
                name="one_live_claim_per_part_of_a_holder",
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
            model_name="claim",
            constraint=models.CheckConstraint(
                condition=models.Q(("members__gte", 1)), name="claim_has_a_member"
            ),
        ),
        migrations.AddConstraint(
            model_name="claim",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "admitted"), _negated=True),
                    models.Q(("nodes__0", models.F("node")), ("nodes__len", models.F("members"))),
                    _connector="OR",
                ),
                name="admitted_with_all_members",
            ),
        ),
        migrations.AddConstraint(
            model_name="claim",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("reclaim_at__isnull", True),
                    models.Q(("state", "waiting"), _negated=True),
                    _connector="OR",
                ),
                name="waiting_is_not_reclaimed",
            ),
        ),
        migrations.AddIndex(
            model_name="booking",
            index=models.Index(fields=["pool", "ends_at"], name="booking_pool_ends"),
        ),
        migrations.AddConstraint(
            model_name="booking",
            constraint=models.CheckConstraint(
                condition=models.Q(("ends_at__gt", models.F("starts_at"))), name="booking_ends_after_start"
            ),
        ),
        migrations.AddConstraint(
            model_name="booking",
            constraint=models.CheckConstraint(
                condition=models.Q(("places__gte", 1), ("units_each__gte", 1)), name="booking_of_something"
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.UniqueConstraint(
                fields=("tenant", "pool"), name="one_quota_per_tenant_and_pool"
            ),
        ),
        migrations.AddConstraint(
            model_name="quota",
            constraint=models.CheckConstraint(
                condition=models.Q(("weight__gte", 1)), name="quota_weight_at_least_1"
            ),
        ),
    ]
