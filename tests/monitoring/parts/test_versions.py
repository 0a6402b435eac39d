"""Versions that have to fit each other, as a table; what differs, as a trouble."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.explain import sentence
from clusters.models import Node, PartPod
from monitoring.parts.versions import Inventory, read, verdicts
from tests.monitoring.parts.rows import everywhere, node, nodes, part

CSI = part("Ceph CSI", version="v3.13.0")


def on(**system: Any) -> list[Node]:
    return [node("gpu-0", **system)]


def unfit(found: Inventory) -> list[str]:
    return [str(one.data["problem"]) for one in verdicts(found) if one.code == "versions_unfit"]


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("containerd://1.7.20-k3s1", (1, 7, 20)),
        ("v1.33.1+k3s1", (1, 33, 1)),
        ("5.15.0-179-generic", (5, 15, 0)),
        ("v1.17.8-ubuntu20.04", (1, 17, 8)),
        ("latest", ()),
        ("", ()),
    ],
)
def test_a_versions_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert read(text) == numbers


@pytest.mark.parametrize(
    ("found", "problems"),
    [
        (Inventory("v1.33.1", on(kubeletVersion="v1.33.0")), 0),
        (Inventory("v1.33.1", on(kubeletVersion="v1.30.9")), 0),
        (Inventory("v1.33.1", on(kubeletVersion="v1.29.9")), 1),
        (Inventory("v1.33.1", on(kubeletVersion="v1.34.0")), 1),
        (Inventory("", on(kubeletVersion="v1.34.0")), 0),
        (Inventory("", on(kubeletVersion="v1.31.0", containerRuntimeVersion="containerd://1.7.20")), 0),
        (Inventory("", on(kubeletVersion="v1.31.0", containerRuntimeVersion="containerd://1.7.19")), 1),
        (Inventory("", on(kubeletVersion="v1.33.0", containerRuntimeVersion="containerd://1.7.2")), 1),
        (Inventory("", on(kubeletVersion="v1.31.0", containerRuntimeVersion="containerd://1.5.9")), 1),
        (Inventory("", on(kubeletVersion="v1.28.0", containerRuntimeVersion="containerd://1.7.2")), 0),
        (Inventory("", on(kubeletVersion="v1.33.0", containerRuntimeVersion="containerd://2.0.1")), 0),
        (Inventory("", on(kubeletVersion="v1.31.0", containerRuntimeVersion="cri-o://1.31.0")), 0),
        (Inventory(pods=[part("NVIDIA container toolkit", version="v1.17.7-ubi8")]), 1),
        (Inventory(pods=[part("NVIDIA container toolkit", version="v1.17.8-ubi8")]), 0),
        (Inventory("v1.33.1", pods=[part("HAMi", scheduler_version="v1.30.2")]), 1),
        (Inventory("v1.33.1", pods=[part("HAMi", scheduler_version="v1.33.0")]), 0),
        (
            Inventory(
                "v1.33.1", pods=[part("kube-scheduler", version="v1.33.1", scheduler_version="v1.32.1")]
            ),
            0,
        ),
        (Inventory(pods=[CSI, part("Ceph", version="v17.2.7")]), 1),
        (Inventory(pods=[CSI, part("Ceph", version="v18.2.4")]), 0),
        (Inventory(pods=[CSI], ceph=frozenset({"16.2.15"})), 1),
        (Inventory(pods=[part("Ceph CSI", version="v3.10.2")], ceph=frozenset({"17.2.7"})), 0),
        (Inventory(pods=[part("Ceph", version="v18.2.4"), part("Ceph", "gpu-1", version="v19.2.0")]), 1),
        (Inventory("", on(kernelVersion="3.10.0-1160.el7.x86_64"), pods=[CSI]), 1),
        (Inventory("", on(kernelVersion="5.15.0-179-generic"), pods=[CSI]), 0),
        (Inventory("", on(kernelVersion="3.10.0-1160.el7.x86_64")), 0),
        (Inventory(pods=[part("NVIDIA device plugin", version="v0.14.5")], sharing=frozenset({"mps"})), 1),
        (Inventory(pods=[part("NVIDIA device plugin", version="v0.15.0")], sharing=frozenset({"mps"})), 0),
        (Inventory(pods=[part("NVIDIA device plugin", version="v0.14.5")], sharing=frozenset({"mig"})), 0),
    ],
)
def test_what_does_not_fit_by_its_makers_word(found: Inventory, problems: int) -> None:
    assert len(unfit(found)) == problems


def test_a_problem_of_many_nodes_is_told_once_with_their_names() -> None:
    many = nodes(30, kubeletVersion="v1.20.1")
    [verdict] = [one for one in verdicts(Inventory("v1.33.1", many)) if one.code == "versions_unfit"]
    assert len(verdict.data["on"]) == 30
    assert sentence(verdict.code, verdict.data).startswith(
        "Versions do not fit each other: kubelet 1.20.1, Kubernetes 1.33 (gpu-0, gpu-1"
    )


def differing(found: Inventory) -> list[tuple[str, str, str]]:
    told = [one for one in verdicts(found) if one.code == "node_versions_differ"]
    return [(one.data["what"], one.data["where"], sentence(one.code, one.data)) for one in told]


def test_nodes_with_the_same_gpus_should_run_the_same() -> None:
    many = [*nodes(3, kernelVersion="5.15.0-1"), node("gpu-9", kernelVersion="6.8.0-2")]
    told = "Nodes of one kind differ (kernel): most have 5.15.0-1, gpu-9: 6.8.0-2."
    assert differing(Inventory(nodes=many)) == [("kernel", "gpu-9", told)]


def test_drivers_too() -> None:
    drivers = {"gpu-0": "570.1", "gpu-1": "570.1", "gpu-2": "535.2"}
    told = differing(Inventory(nodes=nodes(3), drivers=drivers))
    assert [(what, where) for what, where, _ in told] == [("NVIDIA driver", "gpu-2")]


def test_nodes_of_another_kind_may_run_another_kernel() -> None:
    many = [*nodes(3, kernelVersion="5.15.0-1"), node("cpu", labels={}, kernelVersion="6.8.0-2")]
    assert differing(Inventory(nodes=many)) == []


def test_a_part_in_two_versions_is_told_builds_of_one_version_are_not() -> None:
    on_nodes = nodes(3)
    calico = [
        *everywhere("Calico", on_nodes[:2], version="v3.29.1"),
        part("Calico", "gpu-2", version="v3.28.0"),
    ]
    builds = [part("NVIDIA container toolkit", "gpu-0", version="v1.17.8-ubi8")]
    builds += [part("NVIDIA container toolkit", "gpu-1", version="v1.17.8-ubuntu20.04")]
    told = [one for one in verdicts(Inventory(pods=[*calico, *builds])) if one.code == "part_versions_differ"]
    assert [(one.subject, one.data["versions"], one.data["where"]) for one in told] == [
        ("Calico", "v3.28.0, v3.29.1", "gpu-2")
    ]


TEXTS = st.one_of(st.text(max_size=20), st.from_regex(r"v?\d{1,3}(\.\d{1,3}){0,3}", fullmatch=True))


@given(api=TEXTS, kubelet=TEXTS, runtime=TEXTS, kernel=TEXTS, versions=st.lists(TEXTS, max_size=4))
def test_no_text_whatever_makes_it_fail(
    api: str, kubelet: str, runtime: str, kernel: str, versions: list[str]
) -> None:
    system: dict[str, Any] = {
        "kubeletVersion": kubelet, "containerRuntimeVersion": f"containerd://{runtime}", "kernelVersion": kernel,
    }  # fmt: skip
    pods: list[PartPod] = [
        part(name, str(number), version=version, scheduler_version=version)
        for number, version in enumerate(versions)
        for name in ("HAMi", "Ceph", "Ceph CSI", "NVIDIA device plugin", "NVIDIA container toolkit")
    ]
    told = verdicts(Inventory(api, on(**system), pods, ceph=frozenset(versions), sharing=frozenset({"mps"})))
    assert len({one.key for one in told}) == len(told)
