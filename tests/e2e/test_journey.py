"""Main job from end to end: a new member of a group arrives by a link, works, and leaves nothing behind."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext, WebSocket, expect

from tests.e2e.driver import Administration, Lab, Portal, SSHClient, browser
from tests.e2e.stack import Stack, until
from tests.shared.oidc.university import university
from tests.workspaces.package import make_package

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(600)]

STEPS = [
    "request",
    "admission",
    "disk",
    "container",
    "scheduled",
    "image",
    "mounts",
    "started",
    "endpoint",
    "ready",
]
MY_ENV = 'it\'s "quoted" $HOME \\ and 한글'
REPOSITORY = "https://127.0.0.1:9/course.git"  # nobody answers there; the workspace starts anyway
LINK = f"/launch?image=jupyter&flavor=a100-1&repository={REPOSITORY}&env=MY_ENV"
KINDS = ("Pod", "Service", "Secret", "Job", "PersistentVolumeClaim")


@pytest.fixture(scope="module")
def berth() -> Iterator[Stack]:
    """A Berth whose people sign in at their university, where a group means a tenant."""
    with tempfile.TemporaryDirectory(prefix="berth-journey-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)
        stack = Stack(folder / "state")
        with university(folder, f"{stack.address}/sign-in/oidc/callback/") as provider:
            provider.person("ada", groups=["vision-team"])
            stack.environ |= provider.settings("vision-team=demo:member")
            stack.start()
            try:
                yield stack
            finally:
                stack.stop()


def test_a_new_member_comes_by_a_link_works_and_leaves_nothing(berth: Stack, tmp_path: Path) -> None:
    ssh = SSHClient(tmp_path)
    with browser(berth.address, "journey") as context:
        portal = Portal(context)
        comes_by_a_link(portal)
        looks_around_and_adds_a_key(Portal(context), ssh)

        portal.page.get_by_label("Name", exact=True).fill("journey")
        portal.page.get_by_label("Environment", exact=True).fill(f"MY_ENV={MY_ENV}")
        first = portal.launch()
        portal.wait_for("ready")
        watched_ten_steps(portal, first)
        gpus_in_use(portal, 1)

        connects_by_name(portal, ssh)
        files_go_both_ways(ssh, tmp_path)
        works_in_a_notebook(Lab(context, portal), ssh, first)
        alice = colleague(context, berth.address)
        shows_an_app_to_a_colleague(portal, ssh, alice)
        (tmp_path / "alice").mkdir()
        works_together_until_it_is_revoked(portal, alice, SSHClient(tmp_path / "alice"))

        ssh.run("echo kept > written-over-ssh")
        portal.stop()
        portal.wait_for("stopped")
        gpus_in_use(portal, 0)
        portal.press("start")
        portal.wait_for("ready")
        ssh.configure(new_hosts="yes")  # which refuses a host that it has not met
        assert ssh.run("cat written-over-ssh; greet; python -c 'import greeting'") == "kept\nhello\n"

        second = waits_until_the_quota_is_raised(portal, Administration(context, berth.address))
        gpus_in_use(portal, 5)

        portal.delete()
        portal.page.goto(f"/workspaces/{first}/")
        portal.delete()
        until("nothing in the cluster", lambda: objects_of(berth, first) + objects_of(berth, second) == [])
        gpus_in_use(portal, 0)
        portal.page.goto("/")
        expect(portal.page.locator("main")).not_to_contain_text("journey")
        assert portal.faults == []


def comes_by_a_link(portal: Portal) -> None:
    """Open the link and sign in for the first time: the form is filled in as the link says."""
    portal.page.goto(LINK)
    portal.sign_on("ada")
    expect(portal.page.get_by_role("heading", name="Launch a workspace")).to_be_visible()
    assert portal.page.locator("input[name=flavor]:checked").input_value() == "a100-1"
    assert portal.page.get_by_label("Git repository").input_value() == REPOSITORY
    assert portal.page.get_by_label("Environment", exact=True).input_value() == "MY_ENV="


def looks_around_and_adds_a_key(portal: Portal, ssh: SSHClient) -> None:
    """Look at the tenant and the home page in another tab, and paste a private key by mistake."""
    page = portal.page
    page.goto("/tenants/demo/")
    expect(page.get_by_role("row").filter(has_text="ada")).to_contain_text("from a single sign-on group")
    expect(page.get_by_text("You are a member")).to_be_visible()
    page.goto("/")
    expect(page.get_by_text("for Demo. It starts now.")).to_be_visible()

    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    portal.add_key(ssh.private_key)
    said = page.get_by_role("textbox", name="Public key").evaluate("field => field.validationMessage")
    assert "Paste the file that ends in .pub" in said
    portal.add_key(ssh.public_key)
    expect(page.get_by_text("Your SSH key was added.")).to_be_visible()
    assert not any("PRIVATE" in body for body in sent)
    assert portal.faults == []
    page.close()


def works_in_a_notebook(lab: Lab, ssh: SSHClient, workspace: str) -> None:
    assert (
        urlsplit(lab.page.url).hostname == f"{workspace}.localhost"
    )  # through the portal, on a host of its own
    lab.open_notebook()
    lab.run("print(6 * 7)", "42")
    lab.run("%pip install ./greeting", "Successfully installed greeting-1.0")
    lab.run("import greeting; greeting.word", "hello")
    same_in_terminal_and_over_ssh(lab, ssh)
    assert "The repository could not be cloned: the reason stands above." in ssh.run(
        "cat clone-of-course.log"
    )
    lab.close()


FREE_PORT = "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])"


def colleague(context: BrowserContext, address: str) -> Portal:
    """Sign in another member of the tenant, in a browser of their own."""
    assert context.browser
    portal = Portal(context.browser.new_context(base_url=address))
    portal.sign_in("alice")
    return portal


def shows_an_app_to_a_colleague(portal: Portal, ssh: SSHClient, alice: Portal) -> None:
    """Declare an app while the workspace runs; the colleague sees it while it is shared, and no longer."""
    port = ssh.run(f'python -c "{FREE_PORT}"').strip()
    serve = f"python -m http.server {port} --bind 127.0.0.1 --directory shown"
    ssh.run(f"mkdir shown; echo curves > shown/index.html; nohup {serve} >/dev/null 2>&1 </dev/null &")
    apps = portal.page.locator("#apps")
    apps.get_by_text("Add an app").click()
    apps.get_by_label("Name", exact=True).fill("TensorBoard")
    apps.get_by_label("Port").fill(port)
    apps.get_by_role("button", name="Add", exact=True).click()
    link = apps.get_by_role("link", name="Open TensorBoard").get_attribute("href")
    assert link is not None
    alice.page.goto(link)
    expect(alice.page.get_by_text("This app is private")).to_be_visible()
    apps.get_by_role("button", name="Share with the tenant").click()
    expect(apps).to_contain_text("everyone in Demo can open it")
    alice.page.goto(link)
    expect(alice.page.locator("body")).to_have_text("curves")
    apps.get_by_role("button", name="Make private").click()
    until(
        "the colleague is out",
        lambda: alice.page.reload() is not None and not alice.page.get_by_text("curves").count(),
    )


# Notes when the workspace first refuses a request of this page.
ASK_AGAIN = """
setInterval(async () => {
  const answer = await fetch("/api/status", {redirect: "manual"}).catch(() => null);
  if (!answer?.ok) window.refusedAt ??= Date.now();
}, 50);
"""


def works_together_until_it_is_revoked(portal: Portal, alice: Portal, ssh: SSHClient) -> None:
    """Share the workspace: the colleague works in JupyterLab and by SSH; 2 s after it is revoked they are out."""
    shares = portal.page.locator("#shares")
    shares.get_by_text("Share with a colleague").click()
    shares.get_by_label("User name").fill("alice")
    shares.get_by_label("Access", exact=True).select_option("work")
    shares.get_by_role("button", name="Share", exact=True).click()
    expect(shares.locator("[data-share=alice]")).to_contain_text("can work in it")

    alice.page.goto("/?show=shared")
    alice.page.get_by_role("link", name="journey", exact=True).click()
    expect(alice.page.locator("#shared-with-me")).to_be_visible()
    alice.add_key(ssh.public_key)
    ssh.use(alice.copyable("SSH command"))
    until("the colleague's key is there", ssh.answers, seconds=120)
    with alice.page.context.expect_page() as opened:
        alice.page.locator("#open-jupyter").click()
    lab = opened.value
    sockets: list[WebSocket] = []
    lab.on("websocket", lambda socket: sockets.append(socket))  # noqa: PLW0108 (Playwright takes no method of a list)
    expect(
        lab.get_by_role("textbox", name="Terminal input")
    ).to_be_attached()  # it shows what its owner left open
    lab.evaluate(ASK_AGAIN)
    session = [*ssh.command, "echo in; exec sleep 600"]
    with subprocess.Popen(session, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        assert running.stdout is not None and running.stdout.readline() == b"in\n"
        first_sockets = list(sockets)
        assert first_sockets
        revoked_at = time.time()
        shares.get_by_role("button", name="Revoke access of alice").click()
        running.wait(30)
        ssh_out_after = time.time() - revoked_at
    until("the colleague's page is refused", lambda: lab.evaluate("window.refusedAt"))
    lab_out_after = lab.evaluate("window.refusedAt") / 1000 - revoked_at
    print(f"revoked: SSH out after {ssh_out_after:.2f} s, JupyterLab after {lab_out_after:.2f} s")
    assert ssh_out_after < 2 and lab_out_after < 2
    lab.wait_for_timeout(500)  # lets the browser report what was closed
    assert [socket.url for socket in first_sockets if not socket.is_closed()] == []
    assert not ssh.answers()
    expect(alice.page.locator("#shared-with-me")).not_to_be_attached()
    lab.close(run_before_unload=False)


def connects_by_name(portal: Portal, ssh: SSHClient) -> None:
    """Connect with the downloaded config. Only the two host keys that the page names are accepted."""
    ssh.included.write_text(portal.ssh_config())
    ssh.use(portal.copyable("SSH command"))
    assert ssh.run("whoami").strip() == "jovyan"
    labels = ("Fingerprint of the host key", "Fingerprint of Berth’s own host key")
    assert ssh.fingerprints() == {portal.copyable(label) for label in labels}
    link = portal.page.locator("#open-vscode").get_attribute("href")
    assert link == f"vscode://vscode-remote/ssh-remote+{ssh.command[-1]}/home/jovyan"


def waits_until_the_quota_is_raised(portal: Portal, administration: Administration) -> str:
    """Raise the quota: the waiting workspace's page shows its start without a reload. Return its id."""
    administration.give_gpus("Demo · A100 80GB", 4, borrow=0)
    portal.page.goto("/launch/?name=second&flavor=a100-4")
    workspace = portal.launch()
    portal.wait_for("waiting")
    expect(portal.page.locator(".queued[data-code=quota_full]")).to_be_visible()
    portal.page.evaluate("window.wasNotLoadedAgain = true")
    administration.give_gpus("Demo · A100 80GB", 5)
    portal.wait_for("ready")
    assert portal.page.evaluate("window.wasNotLoadedAgain")
    assert administration.portal.faults == []
    return workspace


def watched_ten_steps(portal: Portal, workspace: str) -> None:
    """Check that the page showed steps live and in order, the socket sent events once, and the story has all ten."""
    seen = portal.steps_seen()
    assert seen == sorted(seen) and len(seen) >= 2, seen
    events = portal.api(f"workspaces/{workspace}/events/")
    until("the socket has brought the last", lambda: brought(portal, events[-1]["id"]))
    numbers = [event["id"] for event in portal.events if event["id"] <= events[-1]["id"]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    told = [event["step"] for event in events]
    assert sorted(set(told), key=told.index) == STEPS
    assert len(numbers) >= len(events) - 3, (numbers, told)


def brought(portal: Portal, number: int) -> bool:
    portal.page.wait_for_timeout(50)  # lets the page receive what came meanwhile
    return portal.events[-1]["id"] >= number


def files_go_both_ways(ssh: SSHClient, folder: Path) -> None:
    make_package(folder / "greeting")
    ssh.sftp(f"put -r {folder}/greeting", f"get greeting/backend.py {folder}/back")
    assert (folder / "back").read_bytes() == (folder / "greeting" / "backend.py").read_bytes()


def same_in_terminal_and_over_ssh(lab: Lab, ssh: SSHClient) -> None:
    lab.type_in_terminal('{ which python; echo "$MY_ENV"; } > told; mv told from-terminal')
    until("the terminal's answer", lambda: "from-terminal" in ssh.run("ls"))
    over_ssh = ssh.run('which python; echo "$MY_ENV"')
    assert ssh.run("cat from-terminal") == over_ssh
    assert over_ssh.splitlines()[1] == MY_ENV


def gpus_in_use(portal: Portal, expected: int) -> None:
    """Wait until the pool counts `expected` GPUs as this person's. Only an admitted claim counts."""

    def counted() -> bool:
        pool = next(pool for pool in portal.api("pools/") if pool["slug"] == "a100")
        return bool(pool["gpus"]["mine"] == expected)

    until(f"{expected} GPUs in use", counted)


def objects_of(berth: Stack, workspace: str) -> list[str]:
    """Objects of the workspace in the cluster. Volumes can only be matched by the name of their PVC."""
    labelled = [
        body for kind in KINDS for body in berth.in_cluster(kind, **{"berth.dev/workspace": workspace})
    ]
    volumes = berth.in_cluster("PersistentVolume")
    its_own = [
        volume for volume in volumes if workspace in volume["spec"].get("claimRef", {}).get("name", "")
    ]
    return [f"{item['kind']}/{item['metadata']['name']}" for item in [*labelled, *its_own]]
