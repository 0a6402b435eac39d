"""Changes by hand to a cluster while Berth runs: drift is found, shown, and repaired only when an admin says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from clusters.api import Api
from tests.e2e.driver import Portal, browser
from tests.e2e.stack import Stack, until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(240)]

LIST = "/admin/monitoring/finding/"


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    stack = Stack(tmp_path_factory.mktemp("drift") / "state", BERTH_DEVCLUSTER_PODS="played")
    stack.start()
    yield stack
    stack.stop()


def hand(stack: Stack, kind: str, name: str, path: str, value: object) -> None:
    """Replace a field of an object, as `kubectl edit` would."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("clusters.api.MANAGER", "kubectl-edit")
        operation = {"op": "replace", "path": path, "value": value}
        assert Api(stack.transport()).json_patch(kind, "berth-demo", name, [operation]) is not None


def look(stack: Stack, page: Page) -> None:
    """Press “Check now” twice. Findings are dated back in between, so that the second look confirms them."""
    for _ in range(2):
        (before,) = stack.rows("SELECT ended_at FROM monitoring_look")
        page.goto(LIST)
        page.get_by_role("button", name="Check now").click()
        until("a look since then", partial(looked_since, stack, before["ended_at"]))
        with stack.database(read_only=False) as connection:
            connection.execute(
                "UPDATE monitoring_finding SET first_seen_at = first_seen_at - interval '2 minutes'"
            )
    page.goto(LIST)


def looked_since(stack: Stack, moment: datetime) -> bool:
    query = "SELECT 1 FROM monitoring_look WHERE ended_at > %s AND wanted_at IS NULL"
    return bool(stack.rows(query, moment))


def decide(page: Page, name: str, action: str, button: str) -> None:
    """Choose an action for a finding, and confirm its preview."""
    page.goto(LIST)
    page.get_by_role("row").filter(has_text=name).get_by_role("checkbox").check()
    page.get_by_label("Action:").select_option(action)
    page.get_by_role("button", name="Go").click()
    page.get_by_role("button", name=button, exact=True).click()
    expect(page.get_by_text("Done for 1.")).to_be_visible()


def launched(stack: Stack) -> str:
    """Launch a workspace, wait until it is ready, and return the name of its objects."""
    api = stack.client(stack.token("alice", "read", "workspaces"))
    body = {"tenant": "demo", "name": "drifts", "image": "jupyter", "flavor": "a100-1"}
    status, workspace = api("POST", "workspaces/", body)
    assert status == 201, workspace
    until("ready", lambda: api("GET", f"workspaces/{workspace['id']}/")[1]["phase"] == "ready", 60)
    return f"ws-{workspace['id']}"


def pod_of(stack: Stack) -> str:
    (pod,) = stack.in_cluster("Pod", **{"app.kubernetes.io/managed-by": "berth"})
    return str(pod["metadata"]["uid"])


def test_hands_on_the_cluster(berth: Stack, found: Callable[[str, str], None]) -> None:
    name, api = launched(berth), Api(berth.transport())
    pod, (instance,) = pod_of(berth), berth.rows("SELECT id FROM clusters_installation")
    labels = {"app.kubernetes.io/managed-by": "berth", "berth.dev/workspace": str(uuid4())}
    for left, whose in (("left-over", str(instance["id"])), ("of-another-berth", str(uuid4()))):
        metadata = {"name": left, "namespace": "berth-demo", "labels": labels | {"berth.dev/instance": whose}}
        api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}})
    hand(berth, "Service", name, "/spec/selector", {"app": "other"})
    hand(berth, "Secret", name, "/data/jupyter-token", "c3RvbGVu")
    hand(berth, "ServiceAccount", "workspace", "/automountServiceAccountToken", True)
    api.delete("NetworkPolicy", "berth-demo", "berth")

    with browser(berth.address, "drift") as context:
        portal = Portal(context)
        portal.sign_in("admin")
        page = portal.page
        expect(page.get_by_role("link", name="Admin", exact=True)).to_be_visible()
        until(
            "the first look",
            lambda: berth.rows("SELECT 1 FROM monitoring_look WHERE ended_at IS NOT NULL"),
            60,
        )
        look(berth, page)
        rows = berth.rows(
            "SELECT what, kind, name FROM monitoring_finding"
            " WHERE confirmed_at IS NOT NULL AND resolved_at IS NULL"
        )
        assert {(row["what"], row["kind"], row["name"]) for row in rows} == {
            ("unwanted", "ConfigMap", "left-over"), ("changed", "Service", name), ("changed", "Secret", name),
            ("changed", "ServiceAccount", "workspace"), ("missing", "NetworkPolicy", "berth"),
        }  # fmt: skip
        expect(page.get_by_text("automountServiceAccountToken (kubectl-edit)")).to_be_visible()

        decide(page, "left-over", "delete_object", "Delete, keep data")
        for kind in ("Secret", "NetworkPolicy", "Service"):
            decide(page, f"{kind} berth-demo", "recreate", "Recreate")
        decide(page, "ServiceAccount berth-demo", "accept", "Accept it as it is")
        look(berth, page)
        expect(page.get_by_text("0 rows")).to_be_visible()

    assert pod_of(berth) == pod
    assert (api.get("Secret", "berth-demo", name) or {})["data"]["jupyter-token"] != "c3RvbGVu"
    assert [
        body["metadata"]["name"] for body in api.list("ConfigMap", namespace="berth-demo", labels=labels)
    ] == ["of-another-berth"]
    (service,) = [
        body for body in api.list("Service", namespace="berth-demo") if body["metadata"]["name"] == name
    ]
    assert service["spec"]["selector"] == {"berth.dev/workspace": name.removeprefix("ws-")}
    found(
        "drift by hands",
        "6 of 6 found; 1 deleted, 4 made again, 1 accepted; another Berth's untouched; the pod ran on",
    )
