"""Conditions that a cluster must meet for the recorded scenarios, and removal of what they leave behind."""

import re

from devcluster.testing.cluster import is_gone, is_ready
from devcluster.testing.kube import Kube, Obj
from tests.cluster_contract.player import RECORDED, scenario
from tests.cluster_contract.steps import SILENT, N, pod

_OURS = re.compile(rf"{N}/c-[a-z]+")
_TRY = "c-try"
_GONE_SECONDS = 90


def lacking(kube: Kube, name: str) -> str:
    """Return why a scenario cannot be replayed on the cluster; empty if it can."""
    if name == "scheduling":
        nodes = {n["metadata"]["name"]: _gpus(n) for n in kube.get("/api/v1/nodes")["items"]}
        if nodes != {"fake-0": "8", "fake-1": "8"}:
            return f"its messages count nodes: fake-0 and fake-1 with 8 GPUs each, here are {nodes}"
    if name in ("scheduling", "statefulset", "workloads") and not _plays(kube):
        return "its pods do not run: that takes nodes that play them, as there is no such image"
    return ""


def outlived(kube: Kube, name: str) -> set[str]:
    """Return notes of requests for old versions, which a cluster that has run longer than the recorded one forgot."""
    if name != "reading":
        return set()
    first = kube.watch(f"{N}/default/configmaps", resourceVersion="1")[:1]
    forgotten = bool(first) and first[0]["type"] == "ERROR"
    return {"too old", "list exactly at a compacted resourceVersion"} if forgotten else set()


def clear(kube: Kube) -> None:
    """Remove what the scenarios made, in this run or in an interrupted one."""
    _remove(kube, [f"/api/v1/nodes/{SILENT}", f"{N}/{_TRY}", *_made()])


def _remove(kube: Kube, paths: list[str]) -> None:
    for path in paths:
        kube.call("DELETE", path)
    for path in paths:
        kube.until(path, is_gone, _GONE_SECONDS)


def _plays(kube: Kube) -> bool:
    path = f"{kube.namespace(_TRY)}/pods"
    try:
        kube.create(path, pod("tried"))
        kube.until(f"{path}/tried", is_ready)
    except AssertionError:
        return False
    finally:
        _remove(kube, [f"{N}/{_TRY}"])
    return True


def _gpus(node: Obj) -> str:
    return str(node["status"].get("capacity", {}).get("nvidia.com/gpu", "0"))


def _made() -> list[str]:
    """Return the paths of all made objects, namespaces first: what is in them may hold the rest."""
    entries = [entry for file in RECORDED.glob("*.json") for entry in scenario(file.stem)]
    spaces = {found[0] for e in entries if (found := _OURS.match(e["request"]["path"]))}
    created = [e for e in entries if e["response"].get("status") == 201 and "/c-" not in e["request"]["path"]]
    named = [(e["request"]["path"], e["response"]["body"]["metadata"].get("name")) for e in created]
    return [*sorted(spaces), *(f"{path}/{name}" for path, name in named if name)]
