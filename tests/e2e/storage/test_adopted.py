"""Data that somebody else's pod wrote is adopted by a running Berth: inspected, confirmed, and reached by sftp."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from clusters.api import Api
from tests.e2e.stack import Client, Stack, running, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="disks of process pods need root here"),
    pytest.mark.skipif(shutil.which("sftp") is None, reason="there is no OpenSSH client here"),
]
NAMESPACE, CLAIM = "berth-demo", "old-scans"
WRITES = "mkdir /v/scans && echo a,b > /v/labels.csv"


def written(stack: Stack) -> None:
    """Let a pod that Berth knows nothing of write to a PVC that Berth knows nothing of."""
    api = Api(stack.transport())
    metadata = {"name": CLAIM, "namespace": NAMESPACE}
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "128Mi"}},
        "storageClassName": "net-shared",
    }
    api.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    [image, *_] = [
        pod["spec"]["containers"][0]["image"] for pod in api.list("Pod", namespace=NAMESPACE) if pod["spec"]
    ]
    container = {
        "name": "c",
        "image": image,
        "command": ["sh", "-c", WRITES],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "containers": [container],
        "restartPolicy": "Never",
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": CLAIM}}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    api.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})

    def ended() -> bool:
        found = api.get("Pod", NAMESPACE, CLAIM) or {}
        return bool((found.get("status") or {}).get("phase") == "Succeeded")

    until("their pod has written", ended)
    api.delete("Pod", NAMESPACE, CLAIM)
    until("their pod is gone", lambda: api.get("Pod", NAMESPACE, CLAIM) is None)


def own_files_are_open(client: Client) -> str:
    """Make a dataset and open its files: its namespace is there then, and a pod of Berth's. Return its id."""
    wish = {"tenant": "demo", "name": "own", "kind": "dataset", "size_mib": 128}
    status, made = client("POST", "volumes/", wish)
    assert status == 201, made
    until("it is there", lambda: client("GET", f"volumes/{made['id']}/")[1]["phase"] == "ready")
    session = f"volumes/{made['id']}/files-session/"
    assert client("POST", session)[0] == 202
    until("its files are open", lambda: client("GET", session)[1]["phase"] == "ready")
    return str(made["id"])


class Terminal:
    """A person's sftp, with a key of their own."""

    def __init__(self, client: Client, port: str, folder: Path) -> None:
        self.port, self.key, self.folder = port, folder / "id", folder
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.key)], check=True)
        body = {"name": "laptop", "public_key": (folder / "id.pub").read_text()}
        status, answer = client("POST", "ssh-keys/", body)
        assert status == 201, answer

    def sftp(self, person: str, *batch: str) -> subprocess.CompletedProcess[str]:
        known = ["-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={self.folder}/known"]
        command = [
            "sftp",
            "-q",
            "-b",
            "-",
            "-P",
            self.port,
            "-i",
            str(self.key),
            *known,
            f"{person}@127.0.0.1",
        ]
        lines = "\n".join(batch) + "\n"
        return subprocess.run(command, input=lines, capture_output=True, text=True, timeout=180, check=False)


def test_foreign_data_is_adopted_without_a_risk_and_reached_by_sftp(tmp_path: Path) -> None:
    with running("adopted") as stack:
        alice = stack.client(stack.token("alice", "read", "workspaces", "volumes"))
        own_files_are_open(alice)
        written(stack)
        admin = stack.client(stack.token("admin", "read", "admin"))
        found = {"tenant": "demo", "owner": "alice", "name": "scans", "kind": "dataset", "claim": CLAIM}
        status, volume = admin("POST", "volumes/adopt/", found)
        assert status == 201, volume
        path = f"volumes/{volume['id']}/"

        def adoption() -> Any:
            return alice("GET", path)[1]["adoption"]

        until("it was inspected", lambda: adoption()["inspection"] or adoption()["problem"])
        assert adoption()["problem"] is None
        inspection = adoption()["inspection"]
        assert (inspection["names"], inspection["unreadable"]) == (["labels.csv", "scans/"], False)
        assert inspection["file_system"]

        mount = {"volume": volume["id"], "path": "/data", "read_only": False}
        launch = {
            "tenant": "demo",
            "name": "w",
            "image": "jupyter",
            "flavor": "cpu-small",
            "volumes": [mount],
        }
        assert alice("POST", "workspaces/", launch)[0] == 422

        terminal = Terminal(alice, stack.environ["BERTH_SSH_JUMP_PORT"], tmp_path)
        read = terminal.sftp("alice+scans", "ls", f"get labels.csv {tmp_path}/back")
        assert read.returncode == 0, read.stderr
        assert (tmp_path / "back").read_text() == "a,b\n"
        wrote = terminal.sftp("alice+scans", f"put {tmp_path}/back more.csv")
        assert (wrote.returncode, "ermission denied" in wrote.stderr) == (1, True)

        assert alice("POST", f"{path}confirm/")[0] == 202
        until("it is confirmed", lambda: adoption() is None)
        assert alice("DELETE", f"{path}files-session/")[0] == 202
        until("its files are closed", lambda: alice("GET", f"{path}files-session/")[1]["phase"] == "none")
        wrote = terminal.sftp("alice+scans", f"put {tmp_path}/back more.csv", "ls -1")
        assert wrote.returncode == 0, wrote.stderr
        assert wrote.stdout.split()[-3:] == ["labels.csv", "more.csv", "scans"]
