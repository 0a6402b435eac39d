"""Process pods of a devcluster without root: the same attacks, run as an ordinary user."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import devcluster
from devcluster.kubelet.network import podnetwork
from devcluster.testing.cluster import ROOT, DevCluster, is_ready, running
from helpers.shells import NODES, SYSTEM_PYTHON, attack, disk, output, shell

UID = 54321
SOURCE = Path(devcluster.__file__).parents[1]
AS_SOMEBODY = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups"]


def _somebody_can() -> bool:
    """Return True if an ordinary user can run this code here: with a Python of the system, in a user namespace."""
    if not ROOT or not SYSTEM_PYTHON or shutil.which("slirp4netns") is None:
        return False
    same = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
    reads = f"import os, sys; sys.exit(not os.access({str(SOURCE / 'devcluster')!r}, os.R_OK | os.X_OK))"
    tried = [
        [SYSTEM_PYTHON, "-c", same],
        [SYSTEM_PYTHON, "-c", reads],
        ["unshare", "--user", "--net", "true"],
    ]
    return all(_somebody_runs(command) for command in tried)


def _somebody_runs(command: list[str]) -> bool:
    return subprocess.run([*AS_SOMEBODY, *command], capture_output=True, check=False).returncode == 0


needs_tun = pytest.mark.skipif(
    not ROOT or not _somebody_runs(["sh", "-c", "test -r /dev/net/tun && test -w /dev/net/tun"]),
    reason="only root may open /dev/net/tun here, so an ordinary user's pods share this machine's network",
)
pytestmark = pytest.mark.skipif(
    not _somebody_can(),
    reason="root has to play an ordinary user, who needs the system's Python and user namespaces",
)


class Rootless(DevCluster):
    command = (
        *AS_SOMEBODY,
        "env",
        f"PYTHONPATH={SOURCE}:{sysconfig.get_path('purelib')}",
        "HOME=/nonexistent",
        SYSTEM_PYTHON,
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[DevCluster]:
    with tempfile.TemporaryDirectory(
        prefix="berth-rootless-"
    ) as name:  # not pytest's own folders, which only root can open
        folder = Path(name)
        os.chown(folder, UID, UID)
        folder.chmod(0o755)
        subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", folder / "image"], check=True)
        arguments = ["--pods", "process", "--image", f"local/venv:1={folder / 'image'}"]
        yield from running(folder, *arguments, nodes=NODES, kind=Rootless)


def test_the_pods_are_the_users_own_and_have_no_right(cluster: DevCluster, space: str) -> None:
    text = output(
        cluster, space, shell("p", "id -u; grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status")
    )
    assert text.split() == ["1000", "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1"]


def test_the_kernels_dangerous_parts_are_closed(cluster: DevCluster, space: str) -> None:
    assert not any(attack(cluster, space, "calls").values())


@needs_tun
def test_the_network_is_the_pods_own(cluster: DevCluster, space: str) -> None:
    port = cluster.url.rpartition(":")[2]
    wanted = {"the API": f"127.0.0.1:{port}", "by the router": f"{podnetwork.ROUTER}:{port}"}
    assert not any(attack(cluster, space, "reach", json.dumps(wanted)).values())


def test_disks_secrets_files_and_processes_of_others_are_hidden(cluster: DevCluster, space: str) -> None:
    """Check that mounts and pid namespaces hide what the pods' common uid could read."""
    cluster.create(f"{space}/secrets", {"metadata": {"name": "s"}, "stringData": {"key": "hers"}})
    mounts = {"/home/jovyan": disk(cluster, space, "hers"), "/secret": {"secret": {"secretName": "s"}}}
    hers = shell("neighbour", "echo hers >~/diary; echo written; exec sleep 4713.25", mounts)
    cluster.create(f"{space}/pods", hers)
    cluster.until(f"{space}/pods/neighbour/log", lambda text: text == "written\n")
    seek = f"find / -path /proc -prune -o -name diary -print; ls {cluster.state} {cluster.kubeconfig}"
    seek += "; grep -ls 'sleep.471[3].25' /proc/*/cmdline; true"
    assert output(cluster, space, shell("p", f"({seek}) 2>/dev/null")) == ""
    # The hidden file exists and belongs to this user.
    as_user = [*AS_SOMEBODY, "find", str(cluster.state), "-name", "diary"]
    assert subprocess.run(as_user, capture_output=True, text=True, check=True).stdout.strip()


def test_a_service_reaches_the_pod(cluster: DevCluster, space: str) -> None:
    body = shell("p", "cd /tmp && exec python -m http.server --bind $POD_IP 8888")
    probe = {"httpGet": {"path": "/", "port": 8888}, "periodSeconds": 1}
    body["spec"]["containers"][0]["readinessProbe"] = probe
    cluster.create(f"{space}/pods", body)
    cluster.until(f"{space}/pods/p", is_ready)
