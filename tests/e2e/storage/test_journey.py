"""A team's way with its data: share, publish and mount a dataset, grow a full home, restore from the bin."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.driver import Portal, SSHClient, browser
from tests.e2e.stack import Stack, running, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.geteuid() != 0, reason="disks of process pods need root here"),
]
MIB = 2**20
SMALL_HOME_MIB, GROWN_MIB = 128, 256
SMALL_HOMES = f"from clusters.models import Cluster; Cluster.objects.update(home_mib={SMALL_HOME_MIB})"
SIZE = "a100-1"  # use of volumes is measured on nodes with an agent
DATA, PATH = "scans.bin", "/volumes/street-scenes"


@pytest.fixture(scope="module")
def berth() -> Iterator[Stack]:
    with running("storage") as stack:
        stack.manage("shell", "-c", SMALL_HOMES)
        yield stack


def test_data_is_shared_published_mounted_grown_and_restored(berth: Stack, tmp_path: Path) -> None:
    data = tmp_path / DATA
    data.write_bytes(os.urandom(MIB))
    digest = hashlib.sha256(data.read_bytes()).hexdigest()
    with browser(berth.address, "storage-journey") as context:
        assert context.browser
        alice = arrives(Portal(context), "alice", tmp_path)
        bobs = context.browser.new_context(base_url=berth.address)
        bob = arrives(Portal(bobs), "bob", tmp_path)

        dataset = creates_and_shares(alice.portal.page)
        uploads(alice.portal.page, dataset, data)
        publishes(alice.portal.page, dataset)

        alice.launches_with_version(dataset, "mine")
        bob.finds(dataset)
        bob.launches_with_version(dataset, "bobs")
        for person in (alice, bob):
            person.is_ready(dataset)
            assert person.ssh.run(f"sha256sum < {PATH}/{DATA}").split()[0] == digest
            assert not person.can_write(f"{PATH}/more")

        grows_her_full_home(alice)

        for person in (alice, bob):
            person.stops()
        bins_and_restores(alice.portal.page, dataset)
        opens_files(alice.portal.page, dataset)
        with alice.portal.page.expect_download() as started:
            alice.portal.page.locator(f"[data-entry='{DATA}'] a[download]").click()
        assert hashlib.sha256(Path(started.value.path()).read_bytes()).hexdigest() == digest
        assert alice.portal.faults == bob.portal.faults == []


class Person:
    """Somebody with a browser, a key, and a workspace."""

    def __init__(self, portal: Portal, ssh: SSHClient) -> None:
        self.portal, self.ssh, self.workspace = portal, ssh, ""

    def finds(self, dataset: str) -> None:
        """Come to the page of another's dataset by the list of volumes."""
        page = self.portal.page
        page.goto("/volumes/?show=everyone")
        page.locator(f"[data-volume='{dataset}'] a").click()

    def launches_with_version(self, dataset: str, name: str) -> None:
        """Launch from the row of the version on the dataset's page."""
        page = self.portal.page
        expect(page.locator("#facts")).to_have_attribute("data-phase", "ready")
        page.locator("[data-version='1'] a[href*='volumes=']").click()
        assert page.locator(f"#volume-{dataset}").input_value() == f"{dataset}:1"
        page.locator("input[name=name]").fill(name)
        page.locator(f"input[name=flavor][value='{SIZE}']").check()
        self.workspace = self.portal.launch()

    def is_ready(self, dataset: str) -> None:
        """Wait until the workspace is ready with the dataset, and connect to it."""
        self.portal.wait_for("ready")
        expect(self.portal.page.locator(f"[data-mount='{dataset}'] code")).to_have_text(PATH)
        self.ssh.included.write_text(self.portal.ssh_config())
        self.ssh.use(self.portal.copyable("SSH command"))

    def can_write(self, path: str) -> bool:
        """Try to write 1 MiB. What could be written in part is removed."""
        tried = f"head -c {MIB} /dev/zero > {path} && echo yes || rm -f {path}"
        return self.ssh.run(f"{{ {tried}; }} 2>/dev/null").strip() == "yes"

    def starts(self) -> None:
        self.portal.page.goto(f"/workspaces/{self.workspace}/")
        self.portal.press("start")
        self.portal.wait_for("ready")

    def stops(self) -> None:
        self.portal.page.goto(f"/workspaces/{self.workspace}/")
        self.portal.stop()
        self.portal.wait_for("stopped")


def arrives(portal: Portal, name: str, folder: Path) -> Person:
    """Sign in and add a key."""
    keys = folder / name
    keys.mkdir()
    ssh = SSHClient(keys)
    portal.sign_in(name)
    portal.add_key(ssh.public_key)
    return Person(portal, ssh)


def creates_and_shares(page: Page) -> str:
    """Create a dataset and share it to read. Return its id."""
    page.goto("/volumes/")
    new = page.locator("form:has([name=kind])")
    new.locator("[name=name]").fill("street scenes")
    new.locator("[name=kind]").select_option("dataset")
    new.locator("[name=size_gib]").fill("0.25")
    submits(new)
    expect(page.locator("#facts")).to_have_attribute("data-phase", "ready")
    change = page.locator("form[aria-labelledby=change]")
    change.locator("[name=name]").fill(Path(PATH).name)
    change.locator("[name=shared]").select_option("read")
    submits(change)
    assert page.locator("form[aria-labelledby=change] [name=shared]").input_value() == "read"
    return urlsplit(page.url).path.split("/")[2]


def submits(form: Locator) -> None:
    with form.page.expect_navigation():
        form.locator("button").first.click()


def opens_files(page: Page, volume: str) -> None:
    page.goto(f"/volumes/{volume}/files/")
    page.locator("#open").click()
    page.locator("#listing").wait_for()


def uploads(page: Page, volume: str, file: Path) -> None:
    opens_files(page, volume)
    page.locator("[data-choose]").set_input_files(file)
    page.locator(f"[data-entry='{file.name}']").wait_for()
    page.locator("#close").click()
    page.locator("#open").wait_for()


def publishes(page: Page, volume: str) -> None:
    page.goto(f"/volumes/{volume}/")
    page.locator("form:has(#publish) [name=note]").fill("as recorded")
    page.locator("#publish").click()
    page.locator("[data-version='1'] .status-ready").wait_for()


def grows_her_full_home(alice: Person) -> None:
    """Fill the home until nothing can be written, see that the page says so, grow it there, and write again."""
    page = alice.portal.page
    alice.ssh.run(f"! head -c {2 * SMALL_HOME_MIB}M /dev/zero 2>/dev/null > ballast")
    assert not alice.can_write("notes")
    page.goto("/volumes/")
    page.locator("[data-kind=home] a").click()
    facts = page.locator("#facts")
    until("the page says that it is full", lambda: page.reload() and told(facts, "problem") == "full")
    grow = page.locator("form[aria-labelledby=grow]")
    grow.locator("[name=size_gib]").fill(str(GROWN_MIB / 1024))
    submits(grow)
    until("the growth is done, or waits for a start", lambda: grown(facts) or waits_for_a_start(facts))
    if waits_for_a_start(facts):
        home = page.url
        alice.stops()
        alice.starts()
        page.goto(home)
        until("it has the new size", lambda: page.reload() and grown(facts))
    assert alice.can_write("notes")
    assert int(alice.ssh.run("wc -c < notes")) == MIB


def told(facts: Locator, name: str) -> str | None:
    return facts.get_attribute(f"data-{name}")


def grown(facts: Locator) -> bool:
    return told(facts, "phase") == "ready" and told(facts, "size-mib") == str(GROWN_MIB)


def waits_for_a_start(facts: Locator) -> bool:
    return told(facts, "problem") == "grows_at_next_start"


def bins_and_restores(page: Page, volume: str) -> None:
    page.goto(f"/volumes/{volume}/delete/")
    submits(page.locator("#question"))
    page.goto("/volumes/?show=bin")
    row = page.locator(f"[data-volume='{volume}']")
    row.locator(".status-stopped").wait_for()
    submits(row.locator("form"))
    expect(page.locator("#facts")).to_have_attribute("data-phase", "ready")
    page.goto("/volumes/?show=bin")
    assert row.count() == 0
