"""Attempts of a program in a process pod to reach others' files, disks, sockets and processes.

Each search runs twice, in the pod and as this machine's root, who must find what the pod must not: a search that finds
nothing anywhere proves nothing.
"""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.testing.cluster import DevCluster, is_ready
from devcluster.testing.kube import Obj
from devcluster.testing.waiting import until
from helpers.shells import (
    ATTACKS,
    PROCESSES,
    SYSTEM_PYTHON,
    attack,
    disk,
    found,
    output,
    process_pods,
    python,
    shell,
)

pytestmark = process_pods
ARGUMENTS = PROCESSES
SEARCH = """
import json, os, socket, sys

def read(path):
    try:
        if os.path.isdir(path):
            return bool(os.listdir(path))
        return bool(open(path, "rb").read(1))
    except OSError:
        return False

def reach(path):
    with socket.socket(socket.AF_UNIX) as link:
        try:
            link.connect(path)
        except OSError:
            return False
        return True

def processes():
    others = [p for p in os.listdir("/proc") if p.isdigit() and p != str(os.getpid())]
    for pid in others:
        try:
            yield open(f"/proc/{pid}/cmdline").read().replace(chr(0), " ").strip()
        except OSError:
            pass

wanted = json.loads(sys.argv[1])
found = {
    "read": [p for p in wanted["files"] if read(p)],
    "exist": [p for p in wanted["files"] + wanted["sockets"] if os.path.lexists(p)],
    "reached": [p for p in wanted["sockets"] if reach(p)],
    "processes": [c for c in processes() if any(word in c for word in wanted["processes"])],
    "mounts": [w for w in wanted["mounts"] if w in open("/proc/self/mountinfo").read()],
}
print("found", json.dumps(found))
"""


@pytest.fixture
def mark() -> str:
    """Command line that no other process of this machine has."""
    return f"sleep 4711.{uuid.uuid4().int}"


@pytest.fixture
def neighbour(cluster: DevCluster, space: str, mark: str) -> Obj:
    """Pod of another user with a disk, a Secret and a process to find."""
    cluster.create(f"{space}/secrets", {"metadata": {"name": "s"}, "stringData": {"key": "hers"}})
    mounts = {"/home/jovyan": disk(cluster, space, "hers"), "/secret": {"secret": {"secretName": "s"}}}
    body = shell("neighbour", f"echo hers >~/diary; touch /tmp/draft; exec {mark}", mounts)
    cluster.create(f"{space}/pods", body)
    made = dict(cluster.until(f"{space}/pods/neighbour", is_ready))
    on_this_machine(mark)
    return made


@pytest.fixture
def database(cluster: DevCluster, tmp_path: Path) -> Iterator[dict[str, list[str]]]:
    """Stand-in for a database of root's: a socket and a file under the state directory and under /tmp."""
    in_tmp = Path(tempfile.mkdtemp(prefix="berth-isolation-", dir="/tmp"))
    folders = [cluster.state / "database", in_tmp, tmp_path]
    listening: list[socket.socket] = []
    found: dict[str, list[str]] = {"files": [], "sockets": []}
    for folder in folders:
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)  # only the pod's isolation may keep it out
        secret, at = folder / "password", folder / ".s.PGSQL.5432"
        secret.write_text("root's own")
        secret.chmod(0o600)
        door = socket.socket(socket.AF_UNIX)
        door.bind(str(at))
        at.chmod(0o777)
        door.listen()
        listening.append(door)
        found["files"].append(str(secret))
        found["sockets"].append(str(at))
    yield found
    for door in listening:
        door.close()
    for folder in folders:
        shutil.rmtree(folder)


def searched(cluster: DevCluster, space: str, wanted: Obj) -> tuple[Obj, Obj]:
    """Return what the pod finds, and what root finds, in the mounts of devcluster."""
    sought = json.dumps({"files": [], "sockets": [], "processes": [], "mounts": []} | wanted)
    in_pod = found(output(cluster, space, python("seeker", SEARCH, sought)))
    assert cluster.process is not None
    as_root = [
        "nsenter",
        "--target",
        str(cluster.process.pid),
        "--mount",
        sys.executable,
        "-c",
        SEARCH,
        sought,
    ]
    outside = subprocess.run(as_root, capture_output=True, text=True, check=True).stdout
    return in_pod, found(outside)


def test_the_kernels_dangerous_parts_are_closed_to_a_pod(cluster: DevCluster, space: str) -> None:
    """Check that every attempt fails in the pod, and some succeed for an ordinary user of this machine."""
    in_pod = attack(cluster, space, "calls")
    somebody = [
        "setpriv",
        "--reuid",
        "54321",
        "--regid",
        "54321",
        "--clear-groups",
        "/usr/bin/env",
        "-C",
        "/",
    ]
    command = [*somebody, SYSTEM_PYTHON, "-c", ATTACKS.read_text(), "calls"]
    outside = found(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert not any(in_pod.values()), in_pod
    assert any(outside.values()), outside


def test_a_pod_has_no_descriptor_of_others_and_leaves_no_core(cluster: DevCluster, space: str) -> None:
    text = output(
        cluster,
        space,
        shell("p", "ls /proc/self/fd | wc -l; grep core /proc/self/limits; ls /proc/1/fd 2>&1; true"),
    )
    lines = text.splitlines()
    assert lines[0] == "4"  # three streams, and the folder that is listed
    assert lines[1].split()[4:6] == ["1", "1"]
    assert "Permission denied" in lines[2]


def test_a_signal_to_everybody_reaches_nobody_else(cluster: DevCluster, space: str) -> None:
    cluster.create(f"{space}/pods", shell("neighbour", "exec sleep 60"))
    cluster.until(f"{space}/pods/neighbour", is_ready)
    cluster.create(f"{space}/pods", shell("attacker", "kill -9 -1"))
    cluster.until(f"{space}/pods/attacker", lambda o: o["status"]["phase"] in ("Succeeded", "Failed"))
    assert is_ready(cluster.get(f"{space}/pods/neighbour"))
    assert cluster.process is not None
    assert cluster.process.poll() is None


def test_a_link_laid_in_a_volume_leads_no_sub_path_out_of_it(
    cluster: DevCluster, space: str, tmp_path: Path
) -> None:
    home = disk(cluster, space, "d")
    output(cluster, space, shell("first", f"ln -s {tmp_path} ~/way; mkdir ~/in", {"/home/jovyan": home}))
    for name, sub, goes in (
        ("second", "in/deeper", True),
        ("third", "way", False),
        ("fourth", "way/new", False),
    ):
        body = shell(name, "touch /data/f", {"/data": home})
        body["spec"]["containers"][0]["volumeMounts"][0]["subPath"] = sub
        if goes:
            output(cluster, space, body)
        else:
            cluster.create(f"{space}/pods", body)
            cluster.until(
                f"{space}/events?fieldSelector=reason=Failed", lambda o: "leads over a link" in str(o)
            )
    assert list(tmp_path.iterdir()) == []


def on_this_machine(mark: str) -> dict[str, str]:
    """Return the status, from this machine's kernel, of the process with this command line.

    A pod that is ready has begun its script, but may not have started this command yet.
    """
    found: list[dict[str, str]] = []

    def is_there() -> bool:
        found.extend(called(mark))
        return bool(found)

    until(is_there)
    return found[0]


def called(mark: str) -> Iterator[dict[str, str]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cmdline").read_text().replace("\0", " ").strip() == mark:
                lines = (folder / "status").read_text().splitlines()
                yield {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
        except OSError:
            continue


@pytest.mark.usefixtures("neighbour")
def test_a_pods_process_is_nobody_of_this_machine_and_has_no_capability(mark: str) -> None:
    status = on_this_machine(mark)
    for word in ("Uid", "Gid", "Groups"):
        assert all(int(number) >= 700_000_000 for number in status[word].split()), (word, status[word])
    for word in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[word], 16) == 0, word
    assert status["NoNewPrivs"] == "1"
    # Only inside its user namespace it is the image's user.
    mapped = Path(f"/proc/{status['Pid']}/uid_map").read_text().split()
    assert mapped == ["1000", status["Uid"].split()[0], "1"]


def test_two_pods_are_two_users_of_this_machine(cluster: DevCluster, space: str) -> None:
    marks = [f"sleep 4712.{uuid.uuid4().int}" for _ in range(2)]
    for n, mark in enumerate(marks):
        cluster.create(f"{space}/pods", shell(f"p{n}", f"exec {mark}"))
        cluster.until(f"{space}/pods/p{n}", is_ready)
    assert len({on_this_machine(mark)["Uid"] for mark in marks}) == 2


def test_a_pod_finds_no_disk_secret_or_process_of_another(
    cluster: DevCluster, space: str, neighbour: Obj, mark: str
) -> None:
    uid = neighbour["metadata"]["uid"]
    claim = cluster.get(f"{space}/persistentvolumeclaims/hers")
    volume = claim["spec"]["volumeName"]
    secret = cluster.state / "run" / uid / "v1" / "key"
    scratch = cluster.state / "scratch" / uid / ".container" / "main" / "tmp" / "draft"
    disks = [str(p) for p in cluster.state.rglob(f"*{volume}*") if p.is_file() or p.is_dir()]
    assert disks
    files = [str(secret), str(scratch.parent), f"{cluster.state}/scratch/{uid}.img", *disks]
    wanted = {"files": files, "processes": [mark, "-m devcluster"], "mounts": [volume]}
    in_pod, outside = searched(cluster, space, wanted)
    assert in_pod == {"read": [], "exist": [], "reached": [], "processes": [], "mounts": []}
    assert outside["read"] == files
    assert all(any(word in c for c in outside["processes"]) for word in wanted["processes"])


def test_a_pod_finds_neither_the_state_directory_nor_a_database_of_roots(
    cluster: DevCluster, space: str, database: dict[str, list[str]]
) -> None:
    own = [cluster.state, cluster.state / "objects.sqlite", cluster.state / "tls.pem", cluster.kubeconfig]
    # The interpreter is visible at its own path, even in a home, and nothing beside it.
    home = [p for p in Path("/root").iterdir() if not Path(sys.base_prefix).is_relative_to(p)]
    real = [Path(sys.prefix).parent / ".dev", Path("/var/lib/postgresql"), Path("/run/postgresql")]
    files = [str(p) for p in (*own, *home, *real) if p.exists()] + database["files"]
    in_pod, outside = searched(cluster, space, {"files": files, "sockets": database["sockets"]})
    assert (in_pod["read"], in_pod["exist"], in_pod["reached"]) == ([], [], [])
    assert outside["reached"] == database["sockets"]
    assert set(outside["read"]) >= {str(p) for p in own} | set(database["files"])
