"""Homes and disks of workspaces become volumes. Nothing in a cluster changes: each volume names the PVC that is there."""

from collections import defaultdict
from uuid import UUID

from django.db import migrations, models

HOME_PATH, DISK_PATH = "~", "/disk"
BATCH = 500


def to_volumes(apps, schema_editor):
    workspaces = apps.get_model("workspaces", "Workspace").objects.select_related("pool__cluster")
    volumes = apps.get_model("storage", "Volume").objects
    taken = defaultdict(set)
    for owner, tenant, name in volumes.filter(deleted_at=None, bin_until=None).values_list(
        "owner", "tenant", "name"
    ):
        taken[owner, tenant].add(name)
    made = [
        one
        for row in workspaces.order_by("created_at", "pk").iterator(BATCH)
        for one in storage_of(apps, row, taken)
    ]
    volumes.bulk_create([volume for volume, _ in made], batch_size=BATCH)
    mounts = apps.get_model("storage", "Mount").objects
    mounts.bulk_create([mount for _, mount in made if mount is not None], batch_size=BATCH)


def storage_of(apps, row, taken):
    """Yield each volume of a workspace, and its mount; a deleted workspace's kept data has none."""
    Volume, Mount = apps.get_model("storage", "Volume"), apps.get_model("storage", "Mount")
    cluster = row.pool.cluster
    parts = [("home", HOME_PATH, cluster.home_mib, cluster.home_class)]
    if row.disk_mib:
        parts.append(("disk", DISK_PATH, row.disk_mib, cluster.disk_class))
    for kind, path, size_mib, storage_class in parts:
        claim = f"ws-{row.pk}-{kind}"
        bound = row.volumes.get(claim, "")
        if row.deleted_at and (row.delete_disk or not bound):
            continue
        volume = Volume(
            tenant_id=row.tenant_id,
            owner_id=row.owner_id,
            cluster=cluster,
            name=free_name(f"{row.name[:54]} {kind}", taken[row.owner_id, row.tenant_id]),
            kind=kind,
            made_for=None if row.deleted_at else row.pk,
            claim_name=claim,
            requested_mib=size_mib,
            size_mib=size_mib if bound else 0,
            phase="ready" if bound else "pending",
            storage_class=storage_class,
            access="rwo",
            bound_to=bound,
            affinity=row.affinities.get(claim) or {},
        )
        yield (
            volume,
            None if row.deleted_at else Mount(volume=volume, holder=row.pk, path=path, read_only=False),
        )


def free_name(stem, taken):
    name, number = stem, 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    return name


def to_workspaces(apps, schema_editor):
    workspaces = apps.get_model("workspaces", "Workspace").objects
    volumes = apps.get_model("storage", "Volume").objects.exclude(claim_name="")
    for volume in volumes.filter(deleted_at=None).exclude(bound_to=""):
        row = workspaces.filter(pk=UUID(volume.claim_name[3:39])).first()
        if row is not None:
            row.volumes[volume.claim_name] = volume.bound_to
            row.affinities[volume.claim_name] = volume.affinity
            row.save(update_fields=["volumes", "affinities"])
    apps.get_model("storage", "Mount").objects.filter(
        volume_id__in=list(volumes.values_list("pk", flat=True))
    ).delete()
    volumes.delete()


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0007_affinities"), ("storage", "0003_homes")]

    operations = [
        migrations.RunPython(to_volumes, to_workspaces, elidable=True),
        migrations.RemoveField(model_name="workspace", name="affinities"),
        migrations.RemoveField(model_name="workspace", name="volumes"),
        migrations.AlterField(
            model_name="workspace",
            name="delete_disk",
            field=models.BooleanField(
                default=False, help_text="A deletion takes what was made for it along."
            ),
        ),
    ]
