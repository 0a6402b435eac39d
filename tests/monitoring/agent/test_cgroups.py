"""Counts of processes that the kernel ended, as version 1 and version 2 of cgroups write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from monitoring.agent import cgroups
from monitoring.agent.cgroups import OomCounts

POD, OTHER = "6f0c1d54-5d5e-4a51-9f6e-6d6f7274656d", "11111111-2222-4333-8444-555555555555"
CONTAINER = "a" * 64
EVENTS = "low 0\nhigh 0\nmax 31\noom 2\noom_kill {}\noom_group_kill 0\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"
UNDERSCORED = POD.replace("-", "_")
# Folders of a pod and of its container, by the kubelet's drivers; kind runs a kubelet inside a container.
WAYS = {
    "systemd": (
        f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDERSCORED}.slice",
        f"cri-containerd-{CONTAINER}.scope",
    ),
    "cgroupfs": (f"kubepods/burstable/pod{POD}", CONTAINER),
    "guaranteed": (f"kubepods.slice/kubepods-pod{UNDERSCORED}.slice", f"crio-{CONTAINER}.scope"),
    "kind": (
        f"kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{UNDERSCORED}.slice",
        f"cri-containerd-{CONTAINER}.scope",
    ),
}


def put(folder: Path, version: int, kills: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    name, text = ("memory.events", EVENTS) if version == 2 else ("memory.oom_control", CONTROL)
    (folder / name).write_text(text.format(kills))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_a_childs_end_is_counted_for_its_pod_and_its_container(
    tmp_path: Path, version: int, way: str
) -> None:
    top = tmp_path if version == 2 else tmp_path / "memory"
    (tmp_path / "cpu").mkdir()
    pod, container = WAYS[way]
    put(top / pod, version, 3 if version == 2 else 0)  # version 2 counts those of containers with it
    put(top / pod / container, version, 3)
    found = dict(cgroups.counts(cgroups.top_of(tmp_path) or tmp_path))
    assert found == {(POD, ""): 3 if version == 2 else 0, (POD, CONTAINER): 3}


def test_only_what_changed_is_told_and_all_of_it_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod, container = WAYS["systemd"]
    put(tmp_path / pod, 2, 1)
    put(tmp_path / pod / container, 2, 0)
    counted = OomCounts(tmp_path)
    first = [{"pod_uid": POD, "kills": 1}]
    assert counted.news() == first
    assert counted.news() == []
    put(tmp_path / pod, 2, 2)
    put(tmp_path / pod / container, 2, 1)
    assert counted.news() == [
        {"pod_uid": POD, "kills": 2},
        {"pod_uid": POD, "kills": 1, "container_id": CONTAINER},
    ]
    monkeypatch.setattr(counted, "_again_at", 0.0)
    assert len(counted.news() or []) == 2


def test_a_node_whose_cgroups_are_not_seen_is_told_as_unknown_not_as_zero(tmp_path: Path) -> None:
    assert OomCounts(tmp_path / "none").news() is None
    (tmp_path / "init.scope").mkdir()  # the agent's own namespace: no pods
    assert OomCounts(tmp_path).news() is None
    (tmp_path / "kubepods.slice").mkdir()
    assert OomCounts(tmp_path).news() == []


def test_files_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    pod, container = WAYS["cgroupfs"]
    put(tmp_path / pod, 2, 1)
    (tmp_path / pod / container).mkdir()
    (tmp_path / pod / container / "memory.events").write_bytes(b"\xffoom_kill many\n")
    (tmp_path / "kubepods" / "burstable" / f"pod{OTHER}").mkdir()
    assert dict(cgroups.counts(tmp_path)) == {(POD, ""): 1}


def test_old_kernels_have_no_count(tmp_path: Path) -> None:
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\n")  # before Linux 4.13
    assert cgroups.kills_in(tmp_path) is None
