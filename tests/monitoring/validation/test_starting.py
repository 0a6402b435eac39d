"""GPU tests: what they take, where they are refused, and how admins begin them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from accounts.errors import NotAllowed
from clusters import labels
from clusters.models import Node, PodUsage
from clusters.watch.watching import Changed
from monitoring import enqueue
from monitoring.models import Validation
from monitoring.validation import manifests, reading, starting, steps, words
from quotas.models import Pool
from tests.admin_forms import confirm, preview, text_of
from tests.cast import Cast
from tests.shared.clients import browser
from tests.shared.counted import queries

NODES = "/admin/clusters/node/"
LIST, BEGIN = "/admin/monitoring/validation/", "/admin/monitoring/validation/begin/"


@pytest.fixture
def house(db: None, cast: Cast) -> Cast:
    cast.cluster.validation_image = "tests/vectoradd:1"
    cast.cluster.save()
    return cast


@pytest.fixture
def client(house: Cast) -> Client:
    return browser(house.admin)


def codes(plans: Sequence[starting.Plan]) -> list[str]:
    return [plan.why_not.code if plan.why_not else "" for plan in plans]


def taken(house: Cast, node: str, gpus: int) -> None:
    requests = {"cpu": 1, "memory": 1, "nvidia.com/gpu": gpus}
    PodUsage.objects.create(
        cluster=house.cluster, uid=f"{node}-pod", namespace="x", name="x", node=node, requests=requests
    )


def test_a_node_without_a_free_gpu_is_not_tested(house: Cast) -> None:
    taken(house, "gpu-1", 4)
    plans = starting.plans_of(house.pool)
    assert codes(plans) == ["validation_no_gpu", ""]
    assert plans[0].why_not
    assert words.refusal(plans[0].why_not).message == (
        "No GPU of gpu-1 is free; requests that wait for this pool: 0."
    )


def test_a_plan_takes_as_many_queries_for_one_node_as_for_many(house: Cast) -> None:
    def plan_all() -> None:
        assert set(codes(starting.plans(Node.objects.all()))) == {"validation_no_gpu"}

    Node.objects.filter(name="gpu-2").delete()
    taken(house, "gpu-1", 4)
    few = queries(plan_all)
    for number in range(5):
        node = Node.objects.get(name="gpu-1")
        node.pk, node.name = None, f"more-{number}"
        node.save()
        taken(house, node.name, 4)
    assert queries(plan_all) == few


def test_a_node_that_takes_nothing_new_may_be_tested(house: Cast) -> None:
    Node.objects.update(unschedulable=True, ready=False, out_code="gpu_lost")
    assert codes(starting.plans(Node.objects.all())) == ["", ""]


def test_a_plan_says_why_a_test_is_not_possible(house: Cast) -> None:
    Node.objects.create(cluster=house.cluster, name="cpu-1", allocatable={"cpu": 1000})
    assert codes(starting.plans(Node.objects.filter(name="cpu-1"))) == ["validation_no_pool"]
    house.cluster.validation_image = ""
    house.cluster.save()
    assert codes(starting.plans(Node.objects.filter(name="gpu-1"))) == ["validation_without_image"]


def test_only_admins_start_a_test(house: Cast) -> None:
    (plan,) = starting.plans(Node.objects.filter(name="gpu-1"))
    with pytest.raises(NotAllowed):
        starting.start(house.alice, plan)


@pytest.mark.parametrize(
    ("sharing", "values", "resources"),
    [
        ("exclusive", {}, {"nvidia.com/gpu": "1"}),
        ("time-slicing", {"units_per_gpu": 4}, {"nvidia.com/gpu": "1"}),
        (
            "mig",
            {"units_per_gpu": 7, "resource_name": "nvidia.com/mig-1g.10gb"},
            {"nvidia.com/mig-1g.10gb": "1"},
        ),
        (
            "hami",
            {"units_per_gpu": 100},
            {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8192", "nvidia.com/gpucores": "10"},
        ),
    ],
)
def test_a_test_requests_the_smallest_portion_of_its_pool(
    house: Cast, sharing: str, values: dict[str, Any], resources: dict[str, str]
) -> None:
    pool = Pool(
        cluster=house.cluster, sharing=sharing, gpu_memory_mib=81_920, runtime_class="nvidia", **values
    )
    body = manifests.pod_spec(Validation(cluster=house.cluster, node="gpu-1", image="i"), pool)
    limits = body["containers"][0]["resources"]["limits"]
    assert {name: limits[name] for name in resources} == resources
    assert (body["runtimeClassName"], body.get("schedulerName", "")) == (
        "nvidia",
        "hami-scheduler" if sharing == "hami" else "",
    )


RUN = reading.Run(0, None, None)


@pytest.mark.parametrize(
    ("run", "log", "outcome", "code"),
    [
        (RUN, "Test PASSED\nDone", "passed", "validation_passed"),
        (RUN, "hello", "not-run", "validation_silent"),
        (reading.Run(1, None, None), "Test PASSED", "failed", "validation_wrong"),
        (reading.Run(1, None, None), "", "failed", "validation_wrong"),
    ],
    ids=["its words", "another image", "words beside a failure", "no words"],
)
def test_output_and_exit_code_decide_the_result(run: reading.Run, log: str, outcome: str, code: str) -> None:
    verdict = reading.verdict(run, log, "image")
    assert (verdict.outcome, verdict.code) == (outcome, code)


RUNNING = {
    "metadata": {},
    "spec": {"nodeName": "n"},
    "status": {"containerStatuses": [{"state": {"running": {}}}]},
}
AWAY = {
    "status": {"conditions": [{"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting"}]}
}
WELL = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


@pytest.mark.parametrize(
    ("pod", "node", "outcome", "code"),
    [
        (RUNNING, WELL, "failed", "validation_hangs"),
        (RUNNING, AWAY, "not-run", "node_lost"),
        (None, WELL, "not-run", "validation_too_long"),
    ],
    ids=["it hangs", "its node is away", "it never began"],
)
def test_a_test_without_an_end_failed_only_if_it_had_begun(
    pod: Any, node: Any, outcome: str, code: str
) -> None:
    found = reading.in_the_way(pod, [], node)
    before = reading.Verdict(Validation.Outcome.NOT_RUN)
    verdict = reading.without_end(found, before, has_begun=reading.has_begun(pod))
    assert (verdict.outcome, verdict.code) == (outcome, code)


def test_an_unexpected_error_is_retried_for_a_limited_time(
    house: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plan,) = starting.plans(Node.objects.filter(name="gpu-1"))
    row = starting.start(house.admin, plan)
    monkeypatch.setattr(steps, "api_for", {}.__getitem__)
    steps.look(row.pk)
    assert Validation.objects.get().ended_at is None
    Validation.objects.update(asked_at=timezone.now() - steps.GIVEN_UP - timedelta(seconds=1))
    steps.look(row.pk)
    row.refresh_from_db()
    assert (row.outcome, row.code) == ("not-run", "validation_lost")


def test_a_changed_pod_of_a_test_and_a_lost_task_enqueue_a_look(
    house: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plan,) = starting.plans(Node.objects.filter(name="gpu-1"))
    row = starting.start(house.admin, plan)
    asked: list[UUID] = []
    monkeypatch.setattr(enqueue, "validate", asked.append)

    def change(**labelled: str) -> None:
        body = {"kind": "Pod", "metadata": {"labels": labelled}}
        steps.on_objects_changed(changes=[Changed("MODIFIED", body)])

    change()
    change(**{labels.VALIDATION: "no-uuid"})
    assert asked == []
    change(**{labels.VALIDATION: str(row.pk)})
    assert asked == [row.pk]
    steps.on_tick()
    assert asked == [row.pk]
    Validation.objects.update(queued_at=timezone.now() - steps.LOST_AFTER - timedelta(seconds=1))
    steps.on_tick()
    assert asked == [row.pk] * 2


def test_only_the_end_of_a_long_log_is_kept() -> None:
    kept = reading.tail((f"line {number}" for number in range(20_000)), 1000)
    assert kept.endswith("line 19999") and len(kept) <= 1000


def test_an_admin_chooses_nodes_and_sees_what_a_test_takes(house: Cast, client: Client) -> None:
    taken(house, "gpu-2", 4)
    text = text_of(client.get(f"{BEGIN}?pool={house.pool.pk}"))
    assert "nvidia.com/gpu: 1" in text and "No GPU of gpu-2 is free" in text
    nodes = Node.objects.order_by("name").values_list("pk", flat=True)
    client.post(BEGIN, {"chosen": list(nodes)})
    assert Validation.objects.get().node == "gpu-1"
    text = text_of(client.get(LIST))
    assert "gpu-1" in text and "It is in progress." in text


def test_a_page_with_too_many_nodes_lists_testable_ones_first(
    house: Cast, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monitoring.admin.validation.MOST_AT_ONCE", 1)
    taken(house, "gpu-1", 4)
    text = text_of(client.get(BEGIN))
    assert "Choose at most 1 at once." in text
    assert "gpu-2" in text and "gpu-1" not in text
    assert "Choose at most" not in text_of(client.get(f"{BEGIN}?node={Node.objects.get(name='gpu-2').pk}"))


@pytest.mark.parametrize(
    "asked", ["node=none", "pool=none", "node=999999999999999999999", f"pool={UUID(int=1)}"]
)
def test_an_unknown_node_or_pool_has_no_tests(house: Cast, client: Client, asked: str) -> None:
    assert "There is no node in a pool with GPUs here." in text_of(client.get(f"{BEGIN}?{asked}"))


def test_nodes_are_tested_from_their_list_after_a_preview(house: Cast, client: Client) -> None:
    taken(house, "gpu-2", 4)
    page = preview(client, NODES, "test_gpus", *Node.objects.order_by("name"))
    assert "nvidia.com/gpu: 1" in text_of(page) and "No GPU of gpu-2 is free" in text_of(page)
    assert "1 test has begun." in text_of(confirm(client, NODES, page))
    assert Validation.objects.get().node == "gpu-1"


def test_a_failed_test_is_shown_with_its_log_and_overruled_after_a_preview(
    house: Cast, client: Client
) -> None:
    row = Validation.objects.create(
        cluster=house.cluster, pool=house.pool, node="gpu-1", image="i", outcome="failed", code="validation_hangs",
        ended_at="2026-01-01T00:00:00Z", log="<b>Copy input data",
    )  # fmt: skip
    text = text_of(client.get(f"/admin/monitoring/validation/{row.pk}/change/"))
    assert "did not finish" in text and "&lt;b&gt;Copy input data" in text and "Use the node anyway" in text
    confirm(client, LIST, preview(client, LIST, "overrule", row))
    row.refresh_from_db()
    assert row.overruled_by == house.admin.user


def test_the_command_says_why_it_cannot_test(house: Cast) -> None:
    out = io.StringIO()
    taken(house, "gpu-1", 4)
    with pytest.raises(SystemExit):
        call_command("validate", "gpu-1", stdout=out)
    assert "No GPU of gpu-1 is free" in out.getvalue()
    with pytest.raises(CommandError, match="no such node"):
        call_command("validate", "absent")
