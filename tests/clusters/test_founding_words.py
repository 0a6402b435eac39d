"""Troubles as the founding articles of Berth word them, and the commands that mend them."""

from __future__ import annotations

import re

import pytest
from django.utils import translation

from clusters.causes.commands import COMMANDS
from clusters.explain import BY_CODE, audience, diagnose, diagnose_any, hint, steps

# Source, words of the article, cause, a word of the commands for admins.
WORDS = [
    ("node", "node.kubernetes.io/not-ready", "node_not_ready", ""),
    ("scheduling", "0/4 nodes are available: 4 node(s) were not ready.", "node_not_ready", ""),
    ("scheduling", "ephemeral-storage not enough", "insufficient_resource", "kubectl describe"),
    (
        "scheduling",
        "0/4 nodes are available: 4 Insufficient ephemeral-storage.",
        "insufficient_resource",
        "Allocated",
    ),
    (
        "container",
        "calico: no available IP address, failed to assign an IP",
        "network_plugin_down",
        "calicoctl ipam",
    ),
    ("node", "kubelet has disk pressure", "node_short_of_disk", "crictl rmi"),
    ("volume", "osd.3 is flapping", "storage_unwell", "ceph osd tree"),
    ("volume", "HEALTH_WARN: slow mds", "storage_unwell", "ceph fs status"),
    ("volume", "mds.0 is slow", "storage_unwell", "dump_ops_in_flight"),
    (
        "node",
        "libceph: osd12 (1)10.0.0.1:6801 socket closed (con state OPEN)",
        "storage_unwell",
        "systemctl reboot",
    ),
    ("volume", "can't not read super block", "volume_damaged", "blkid -p"),
    (
        "volume",
        "mount: 10.0.0.1:6789:/volumes/home: can't not read super block",
        "storage_unwell",
        "ceph fs status",
    ),
    ("volume", "mount: /dev/rbd0: can't read superblock", "volume_damaged", "xfs_repair -n"),
    ("volume", "mount error 12 = Cannot allocate memory", "volume_not_mountable", "session ls"),
    ("container", "mount error 12 = Cannot allocate memory", "volume_not_mountable", "session ls"),
    (
        "container",
        "open /dev/nvidia-uvm: no such file or directory",
        "gpu_uvm_missing",
        "mknod -m 666 /dev/nvidia-uvm c",
    ),
    ("container", "nvidia-uvm not found", "gpu_uvm_missing", "modprobe nvidia-uvm"),
    ("scheduling", "in-sufficient gpu memory", "gpu_share_short", ""),
    (
        "scheduling",
        "0/3 nodes are available: 3 insufficient GPU Memory in one device.",
        "gpu_share_short",
        "",
    ),
    ("container", "CUDA driver version is insufficient for CUDA runtime version", "gpu_software_unfit", ""),
    (
        "image",
        'ImageInspect failed: desc = "transport: Error while dialing dial unix /run/containerd/containerd.sock"',
        "node_unwell",
        "systemctl status containerd",
    ),
    (
        "container",
        "Failed to initialize NVML: could not load NVML library",
        "gpu_driver_not_loaded",
        "--set-as-default",
    ),
    ("container", "write error: devices.allow: no such file or directory", "gpu_nvml_failed", "cgroupDriver"),
    ("container", "Failed to initialize NVML: Unknown Error", "gpu_vanished", "create-dev-char-symlinks"),
    (
        "volume",
        'Disk "/dev/rbd0" appears to be unformatted, attempting to format',
        "volume_formatting",
        "wipefs --no-act",
    ),
    ("volume", "read-only file system", "volume_damaged", ""),
    ("way", "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!", "ssh_host_key_changed", ""),
    ("way", "Couldn't authenticate WebSocket connection", "websocket_not_signed_in", ""),
    ("way", 'Can "Upgrade" only to "WebSocket".', "websocket_blocked", "proxy_set_header Upgrade"),
    (
        "scheduling",
        "0/2 nodes are available: 1 Insufficient nvidia.com/gpucores, 1 Insufficient nvidia.com/gpumem.",
        "hami_not_handled",
        "grep -i hami",
    ),
]


@pytest.mark.parametrize(
    ("source", "text", "code", "command"), WORDS, ids=[f"{row[0]}-{row[1][:40]}" for row in WORDS]
)
def test_each_is_recognised_and_has_the_commands_that_mend_it(
    source: str, text: str, code: str, command: str
) -> None:
    assert diagnose(source, text).code == code
    assert diagnose_any(text).code == code
    told = "\n".join(line for step in steps(code) for line in step.commands)
    assert command in told


def test_memory_of_a_gpu_that_is_short_is_called_memory() -> None:
    assert diagnose("scheduling", "in-sufficient gpu memory").data["resource"] == "memory"


def test_hints_of_people_hold_no_commands_of_admins() -> None:
    of_people = [code for code in BY_CODE if audience(code) == "you" and not code.startswith("ssh_")]
    told = {code: hint(code, {}) for code in of_people}
    assert [
        code for code, text in told.items() if re.search(r"\b(?:kubectl|systemctl|modprobe|ceph)\b", text)
    ] == []


def test_commands_are_of_known_causes_and_each_step_says_what_it_is_for() -> None:
    assert COMMANDS.keys() <= BY_CODE.keys()
    assert all(str(step.purpose) and step.commands for found in COMMANDS.values() for step in found)


def test_the_nodes_name_is_filled_in_where_it_is_known() -> None:
    with translation.override("en"):
        lines = [line for step in steps("node_lost", "gpu-7") for line in step.commands]
    assert "kubectl describe node gpu-7" in lines
    assert not any("NODE" in line for line in lines)


def test_no_command_deletes_data() -> None:
    lines = [line for found in COMMANDS.values() for step in found for line in step.commands]
    harmful = re.compile(
        r"\bmkfs|wipefs(?! --no-act)|\brbd (?:rm|remove)|delete (?:pvc?|namespace)|rm -rf|xfs_repair(?! -n)"
    )
    assert [line for line in lines if harmful.search(line)] == []


@pytest.mark.parametrize(
    "text",
    [
        "git@github.com: Permission denied (publickey).\nfatal: Could not read from remote repository.",
        "ssh: connect to host github.com port 22: Connection timed out",
    ],
)
def test_what_git_prints_about_its_own_server_is_no_trouble_of_the_workspace(text: str) -> None:
    assert not diagnose("container", text).code.startswith("ssh_")
