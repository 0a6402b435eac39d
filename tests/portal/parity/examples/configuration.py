"""Examples of what admins configure: each kind of object by its own address, and in the file of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml

from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene

Values = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of object: its row of the table, a new one, a change of it, and its own address in the table.

    A `row` without a verb stands for three: add, change and delete.
    """

    name: str
    row: str
    new: Values
    change: Values
    address: str = ""
    key: tuple[str, ...] = ("slug",)

    @property
    def list(self) -> str:
        return f"{self.name.replace('_', '-')}/"

    @property
    def path(self) -> str:
        return f"{self.list}{'/'.join(self.new[part] for part in self.key)}/"

    def row_of(self, verb: str) -> str:
        return self.row if " " in self.row else f"{self.row} {verb}"

    def key_of(self, values: Values) -> tuple[Any, ...]:
        return tuple(values.get(part) for part in self.key)


SIZE = {"pool": "a100", "gpus": 2, "cpu": 8, "memory_mib": 8192}
KINDS = (
    Kind("tenants", "accounts.tenant", {"slug": "third", "name": "Third"}, {"name": "Other"}, "<slug:slug>/"),
    Kind(
        "clusters", "clusters.cluster", {"slug": "far", "name": "Far", "kubeconfig_path": "/far"}, {"name": "Other"},
        "<slug:cluster>/",
    ),
    Kind(
        "pools", "quotas.pool", {"slug": "t4", "name": "T4", "cluster": "main", "node_labels": {"gpu": "t4"}},
        {"weight": 2}, "<slug:pool>/",
    ),
    Kind(
        "flavors", "quotas.flavor", {"slug": "a100-2", "name": "Two", **SIZE}, {"memory_mib": 4096}, "<slug:flavor>/"
    ),
    Kind(
        "images", "workloads.image", {"slug": "lab", "name": "Lab", "reference": "registry.example/lab:1"},
        {"name": "Other"}, "<slug:image>/",
    ),
    Kind(
        "quotas", "quotas.quota", {"tenant": "third", "pool": "a100", "nominal_gpus": 3}, {"nominal_gpus": 2},
        "<slug:slug>/<slug:pool>/", ("tenant", "pool"),
    ),
    Kind(
        "limits", "quotas.tenantlimit", {"tenant": "second", "workspaces": 2}, {"workspaces": 9}, "<slug:slug>/",
        ("tenant",),
    ),
    Kind(
        "log_limits", "accounts.tenant change", {"tenant": "second", "days": 7}, {"days": 9}, "<slug:slug>/",
        ("tenant",),
    ),
    Kind(
        "budgets", "quotas.budget", {"tenant": "second", "gpu_hours": 10}, {"gpu_hours": 9}, "<slug:slug>/",
        ("tenant",),
    ),
    Kind(
        "idle_policies", "monitoring.idlepolicy", {"tenant": "demo", "pool": "a100", "minutes": 60}, {"minutes": 90},
        key=("tenant", "pool"),
    ),
)  # fmt: skip


def by_itself(kind: Kind) -> None:
    @example(f"POST {kind.list}", kind.row_of("add"))
    def added(scene: Scene) -> None:
        make(scene, kind)
        assert kind.new.items() <= scene.admin.get(kind.path).items()

    @example(f"PATCH {kind.list}{kind.address}", kind.row_of("change"))
    def changed(scene: Scene) -> None:
        make(scene, kind)
        scene.admin.api(f"PATCH {kind.path}", kind.change)
        assert (kind.new | kind.change).items() <= scene.admin.get(kind.path).items()

    @example(f"DELETE {kind.list}{kind.address}", kind.row_of("delete"))
    def deleted(scene: Scene) -> None:
        make(scene, kind)
        scene.admin.api(f"DELETE {kind.path}")
        assert kind.key_of(kind.new) not in in_the_file(scene, kind)


def in_a_file(kind: Kind) -> None:
    @example("PUT configuration/", *map(kind.row_of, ("add", "change", "delete")))
    def written(scene: Scene) -> None:
        prepare(scene, kind)
        before = in_the_file(scene, kind)
        for one in (kind.new, kind.new | kind.change):
            scene.admin.api("PUT configuration/", {kind.name: [*before.values(), one]})
            assert one.items() <= in_the_file(scene, kind)[kind.key_of(one)].items()
        scene.admin.api("PUT configuration/", {kind.name: [*before.values()], "delete_absent": [kind.name]})
        assert in_the_file(scene, kind) == before


def make(scene: Scene, kind: Kind) -> None:
    prepare(scene, kind)
    scene.admin.api(f"POST {kind.list}", kind.new)


def prepare(scene: Scene, kind: Kind) -> None:
    """Make the tenant that has no quota yet."""
    if kind.new.get("tenant") == "third":
        scene.admin.api("POST tenants/", KINDS[0].new)


def in_the_file(scene: Scene, kind: Kind) -> dict[tuple[Any, ...], Values]:
    """Return the objects of the kind in the file of all, by their keys."""
    file = yaml.safe_load(scene.admin.berth("configuration", "get"))
    return {kind.key_of(one): one for one in file[kind.name]}


for _kind in KINDS:
    if " " not in _kind.row:
        in_a_file(_kind)
    if _kind.address:
        by_itself(_kind)
