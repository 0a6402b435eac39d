"""Files sessions on a trial cluster with real pods and the rights of Berth's own account: start, transfers, the end."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from accounts.credentials import tokens
from clusters.connections import api_for
from clusters.models import Installation
from devcluster.testing.cluster import running
from devcluster.testing.waiting import until
from portal.up import networks
from storage.cluster.look import look
from storage.files import sessions
from storage.models import FilesSession, Volume
from tests.cast import Cast
from tests.e2e.browsing import signed_in, web_process
from tests.own_rights import OwnRights, bind
from tests.shared.cast_fixtures import NODES
from tests.shared.clients import EVERY_SCOPE
from tests.shared.keeping import created, in_phase, keep
from tests.shared.looking import listed

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="disks of process pods need root here"),
]
REFERENCE = "docker.io/local/venv:1"
PROCESSES = ("--pods", "process", "--image", f"{REFERENCE}={sys.prefix}")
MIB = 2**20
LARGE = 256 * MIB
SLOW = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": 16 * MIB}


@pytest.fixture
def house(cast: Cast, tmp_path: Path) -> Iterator[Cast]:
    """Cast whose cluster has real pods, with the trial's networks."""
    for cluster in running(tmp_path, *PROCESSES, nodes=NODES):
        cast.cluster.kubeconfig_path = str(OwnRights(cluster.kubeconfig, tmp_path).kubeconfig)
        cast.cluster.files_image = REFERENCE
        for name, cidrs in networks.TRIAL.items():
            setattr(cast.cluster, name, cidrs)
        bind(cast.cluster)
        cast.cluster.save()
        yield cast


@pytest.fixture
def dataset(house: Cast) -> Volume:
    return keep(created(house, size_mib=1024), in_phase("ready"))


def in_files_phase(volume: Volume, phase: str) -> FilesSession:
    """Look at the volume until its session is as expected."""
    seen = FilesSession.objects.filter(volume=volume)

    def there() -> bool:
        row = Volume.objects.select_related("tenant", "cluster", "source__volume__tenant").get(pk=volume.pk)
        look(row, listed(row.cluster, row.tenant.namespace), Installation.current_id())
        return seen.get().phase == phase

    try:
        until(there)
    except AssertionError:
        row = seen.get()
        pods = api_for(volume.cluster).list("Pod", namespace=volume.tenant.namespace)
        pytest.fail(f"{row.phase} {row.problem} {row.problem_data} {[pod['status'] for pod in pods]}")
    return seen.get()


class Script:
    """Client of the web process with a token of alice's."""

    def __init__(self, address: str, house: Cast, volume: Volume) -> None:
        self.at = address.removeprefix("http://")
        self.secret = tokens.issue(house.alice.user, "script", EVERY_SCOPE, None)[1]
        self.base = f"/api/v1/volumes/{volume.pk}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        connection = HTTPConnection(self.at, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, self.base + path, body, {"Authorization": f"Bearer {self.secret}"} | named)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def breaks_off(self, path: str, size: int, data: bytes) -> None:
        """Announce an upload of a size, send less, and cut the connection."""
        connection = HTTPConnection(self.at, timeout=60)
        connection.putrequest("PUT", self.base + path)
        connection.putheader("Authorization", f"Bearer {self.secret}")
        connection.putheader("Content-Length", str(size))
        connection.endheaders(data)
        connection.close()


def memory_of(address: str) -> int:
    """Return the resident bytes of the web process at this address."""
    port = address.rpartition(":")[2].encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if port in (folder / "cmdline").read_bytes().split(b"\0"):
                pages = int((folder / "statm").read_text().split()[1])
                return pages * os.sysconf("SC_PAGESIZE")
    raise LookupError(address)


def test_files_go_up_and_down_while_nothing_runs(house: Cast, dataset: Volume, tmp_path: Path) -> None:
    assert sessions.start(house.alice, dataset)[1]
    session = in_files_phase(dataset, "ready")
    assert session.writes
    data = os.urandom(MIB) * (LARGE // MIB)
    digest = hashlib.sha256(data).hexdigest()
    with web_process(tmp_path / "static") as address:
        script = Script(address, house, dataset)
        assert script.ask("PUT", "/files/content/?path=a.txt", b"hello")[0] == 201
        assert script.ask("GET", "/files/content/?path=a.txt") == (200, b"hello")
        before = memory_of(address)
        script.breaks_off("/files/content/?path=large", LARGE, data[: 100 * MIB])

        def received() -> int:
            code, body = script.ask(
                "PUT", "/files/content/?path=large", b"", Content_Range=f"bytes */{LARGE}"
            )
            return int(body.split(b":")[1].split(b",")[0]) if code == 202 else 0

        until(lambda: received() > 0)
        there = received()
        rest = {"Content_Range": f"bytes {there}-{LARGE - 1}/{LARGE}"}
        code, body = script.ask("PUT", "/files/content/?path=large", data[there:], **rest)
        assert code == 201, body
        code, back = script.ask("GET", "/files/content/?path=large")
        assert hashlib.sha256(back).hexdigest() == digest
        grown = memory_of(address) - before
        assert grown < 32 * MIB
    assert sessions.end(house.alice, dataset)
    in_files_phase(dataset, "ended")
    assert not api_for(house.cluster).list("Pod", namespace=house.demo.namespace)


def test_a_browser_uploads_over_a_cut_connection_and_tidies_up(
    house: Cast, dataset: Volume, tmp_path: Path, browser: Browser
) -> None:
    """Open, upload with the network away for a while, make a folder, rename, download, delete, close."""
    large = tmp_path / "scans 1.bin"
    large.write_bytes(os.urandom(MIB) * 96)
    with web_process(tmp_path / "static") as address:
        context = signed_in(browser, address, house.alice.user)
        page = context.new_page()
        page.goto(f"/volumes/{dataset.pk}/")
        page.get_by_role("link", name="Files").click()
        page.get_by_role("button", name="Open files").click()
        in_files_phase(dataset, "ready")
        page.locator("[data-choose]").wait_for(state="attached")
        network = context.new_cdp_session(page)
        network.send("Network.emulateNetworkConditions", SLOW | {"offline": False})
        page.locator("[data-choose]").set_input_files(large)
        bar = page.locator(".files-upload progress")
        until(lambda: bar.evaluate("bar => bar.value") > 40)  # in the second of three pieces
        network.send("Network.emulateNetworkConditions", SLOW | {"offline": True})
        page.get_by_text("The connection is lost").wait_for()
        network.send("Network.emulateNetworkConditions", SLOW | {"offline": False, "uploadThroughput": -1})
        page.locator("[data-entry='scans 1.bin']").wait_for()
        assert bar.evaluate("bar => bar.value") == 100
        with page.expect_download() as started:
            page.get_by_role("link", name="scans 1.bin", exact=True).click()
        assert Path(started.value.path()).read_bytes() == large.read_bytes()
        page.get_by_label("Name of the new folder").fill("runs")
        page.get_by_role("button", name="New folder").click()
        page.get_by_role("link", name="Rename scans 1.bin").click()
        page.get_by_label("New path").fill("runs/scans.bin")
        page.locator("#question").get_by_role("button", name="Rename").click()
        page.get_by_role("link", name="runs/", exact=True).click()
        page.get_by_role("link", name="scans.bin", exact=True).wait_for()
        page.get_by_role("navigation", name="Path").get_by_role("link", name="data").click()
        page.get_by_role("link", name="Delete runs").click()
        page.locator("#question").get_by_role("button", name="Delete").click()
        page.get_by_text("This folder is empty").wait_for()
        page.get_by_role("button", name="Close files").click()
        in_files_phase(dataset, "ended")
        page.get_by_role("button", name="Open files").wait_for()
        context.close()
