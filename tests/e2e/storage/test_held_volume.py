"""A node's agent keeps a volume mounted after its run has ended: nobody else gets it, its person and the admin are told
which node it is, and nothing is formatted.

The same mount without Berth's lease loses all files: test_volume_data.py of devcluster.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import urllib.request
from typing import Any

import pytest

from tests.e2e.stack import Client, Stack, running, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="disks of process pods need root here"),
]
CONTENT = os.urandom(2**20)
# What the first page of the admin says of such volumes.
ATTENTION = (
    "import json; from portal.attention import still_attached; "
    "print(json.dumps([(item.text, item.hint) for item in still_attached()]))"
)


def files(client: Client, volume: str, method: str, data: bytes | None = None) -> bytes:
    """Send or fetch the file of the volume, by a files session."""
    path = f"volumes/{volume}/files-session/"
    assert client("POST", path)[0] in (200, 202)
    until("the files are open", lambda: client("GET", path)[1]["phase"] == "ready")
    address = f"{client.address}/api/v1/volumes/{volume}/files/content/?path=data"
    headers = {"Authorization": f"Bearer {client.token}"}
    request = urllib.request.Request(address, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        found: bytes = answer.read()
    assert client("DELETE", path)[0] == 202
    until("the files are closed", lambda: client("GET", path)[1]["phase"] == "none")
    return found


def launched(client: Client, name: str, volume: str, *, read_only: bool) -> str:
    mount = {"volume": volume, "path": "/data", "read_only": read_only}
    body = {"tenant": "demo", "name": name, "image": "jupyter", "flavor": "cpu-small", "volumes": [mount]}
    status, made = client("POST", "workspaces/", body)
    assert status == 201, made
    return str(made["id"])


def is_in(client: Client, workspace: str, phase: str) -> bool:
    return bool(client("GET", f"workspaces/{workspace}/")[1]["phase"] == phase)


def attachments(stack: Stack, volume: str) -> list[Any]:
    [claim] = [one for one in stack.in_cluster("PersistentVolumeClaim") if volume in one["metadata"]["name"]]
    source = {"persistentVolumeName": claim["spec"]["volumeName"]}
    return [one for one in stack.in_cluster("VolumeAttachment") if one["spec"]["source"] == source]


@pytest.mark.long
def test_nobody_gets_a_volume_that_a_node_still_holds() -> None:
    with running("held") as stack:
        alice = stack.client(stack.token("alice", "read", "workspaces", "volumes"))
        wish = {"tenant": "demo", "name": "scans", "kind": "dataset", "size_mib": 256, "shared": "write"}
        status, made = alice("POST", "volumes/", wish)
        assert status == 201, made
        volume = made["id"]
        until("the volume is there", lambda: alice("GET", f"volumes/{volume}/")[1]["phase"] == "ready")
        files(alice, volume, "PUT", CONTENT)

        until("no node has it", lambda: not attachments(stack, volume))
        reader = launched(alice, "reader", volume, read_only=True)
        until("the reader runs", lambda: is_in(alice, reader, "ready"))
        fault = stack.fault(volume="held", match={"claim": f"vol-{volume}"})
        [attachment] = attachments(stack, volume)
        assert alice("POST", f"workspaces/{reader}/stop/")[0] == 202
        until("the reader ended", lambda: is_in(alice, reader, "stopped"))

        bob = stack.client(stack.token("bob", "read", "workspaces", "volumes"))
        writer = launched(bob, "writer", volume, read_only=False)

        def reason() -> dict[str, Any]:
            found: dict[str, Any] = (bob("GET", f"workspaces/{writer}/")[1]["queue"] or {}).get(
                "reason"
            ) or {}
            return found

        until("its person is told", lambda: reason().get("code") == "volume_still_attached")
        node = attachment["spec"]["nodeName"]
        assert node in reason()["message"]
        [(text, hint)] = json.loads(stack.manage("shell", "-v0", "-c", ATTENTION).splitlines()[-1])
        assert (node in text, "scans" in text, "out of service" in hint) == (True, True, True)
        time.sleep(3)  # several passes
        assert is_in(bob, writer, "waiting")
        assert not stack.in_cluster("Pod", **{"berth.dev/workspace": writer})
        assert stack.hits() == {fault: 0}

        stack.end_faults(fault)
        until("the writer runs by itself", lambda: is_in(bob, writer, "ready"))
        assert bob("POST", f"workspaces/{writer}/stop/")[0] == 202
        until("the writer ended", lambda: is_in(bob, writer, "stopped"))
        until("the node let go", lambda: not attachments(stack, volume))
        found = files(alice, volume, "GET")
        assert hashlib.sha256(found).digest() == hashlib.sha256(CONTENT).digest()
