"""Migrations that change rows of workspaces, forth and back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from storage.models import Mount, Volume
from tests.cast import Cast
from tests.shared.migrating import as_migrated, migrate
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Desired, Phase, Workspace

__all__ = ["as_migrated"]

BEFORE = ("workspaces", "0005_jupyter_host")


def phases() -> dict[str, str]:
    return dict(Workspace.objects.values_list("name", "phase"))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("as_migrated")
def test_what_is_gone_says_so_and_what_still_goes_does_not(cast: Cast) -> None:
    wanted: dict[str, Any] = {"desired": Desired.DELETED}
    make_workspace(cast, cast.bob, Phase.DELETED, name="gone", deleted_at=timezone.now(), **wanted)
    make_workspace(cast, cast.bob, Phase.DELETING, name="going", **wanted)
    make_workspace(cast, cast.bob, Phase.READY, name="runs")
    now = {"gone": "deleted", "going": "deleting", "runs": "ready"}

    migrate(BEFORE)
    assert phases() == now | {"gone": "deleting"}
    migrate()
    assert phases() == now


def old_storage(rows: dict[Any, tuple[dict[str, str], dict[str, Any]]]) -> None:
    """Write what an earlier version noted of the workspaces' PVCs: their volumes, and the nodes of these."""
    with connection.cursor() as cursor:
        for pk, noted in rows.items():
            sql = "UPDATE workspaces_workspace SET volumes = %s, affinities = %s WHERE id = %s"
            cursor.execute(sql, [*map(json.dumps, noted), pk])


def noted_storage() -> dict[Any, tuple[dict[str, str], dict[str, Any]]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, volumes, affinities FROM workspaces_workspace WHERE volumes <> '{}'")
        return {pk: (json.loads(volumes), json.loads(nodes)) for pk, volumes, nodes in cursor.fetchall()}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("as_migrated")
def test_homes_and_disks_of_an_earlier_version_become_volumes_of_the_same_pvcs(cast: Cast) -> None:
    gone: dict[str, Any] = {"desired": Desired.DELETED, "deleted_at": timezone.now()}
    kept = make_workspace(cast, cast.bob, Phase.DELETED, name="w-1", **gone)
    live = [
        make_workspace(cast, cast.bob, Phase.STOPPED, name=f"w-{n}", disk_mib=n % 2 * 64) for n in range(100)
    ]
    never = make_workspace(cast, cast.bob, Phase.WAITING, name="never")
    node = {
        "nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}
        ]
    }
    before = {}
    for row in [*live, kept]:
        claims = {f"ws-{row.pk}-home": f"pv-home-{row.pk}"}
        nodes: dict[str, Any] = {f"ws-{row.pk}-home": {}}
        if row.disk_mib:
            claims[f"ws-{row.pk}-disk"], nodes[f"ws-{row.pk}-disk"] = f"pv-disk-{row.pk}", node
        before[row.pk] = (claims, nodes)

    migrate(("workspaces", "0007_affinities"))
    old_storage(before)
    migrate()
    bound = {volume.object_name: volume.bound_to for volume in Volume.objects.exclude(bound_to="")}
    assert bound == {claim: volume for claims, _ in before.values() for claim, volume in claims.items()}
    assert not Volume.objects.filter(is_main=True).exists()  # a person says which is theirs
    for row in live:
        paths = dict(Mount.objects.filter(holder=row.pk).values_list("path", "volume__kind"))
        assert paths == {"~": "home"} | ({"/disk": "disk"} if row.disk_mib else {})
    assert {disk.node for disk in Volume.objects.filter(kind="disk")} == {"gpu-1"}
    left = Volume.objects.get(claim_name=f"ws-{kept.pk}-home")
    assert (left.name, left.made_for, left.mounts.count()) == ("w-1 home", None, 0)
    waiting = Volume.objects.get(mounts__holder=never.pk)
    assert (waiting.phase, waiting.size_mib, waiting.object_name) == ("pending", 0, f"ws-{never.pk}-home")

    migrate(("workspaces", "0007_affinities"))
    assert noted_storage() == before
    migrate()
