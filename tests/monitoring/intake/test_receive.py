"""Results of an agent's batch: rows of GPUs, figures of the right time and run, errors; each of them once."""

from __future__ import annotations

import time
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from clusters.models import Gpu, PodUsage
from monitoring.intake import tokens
from monitoring.models import AgentState, Figure, Track, XidEvent
from quotas.models import Claim
from tests.cast import Cast, make_cast
from tests.crew import crew, on_its_own
from tests.monitoring.intake.pods import has_pod, pod_of
from tests.shared.agent_reports import GPU_0, GPU_1, batch, facts, holding, report, sample, send
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def workspace(cast: Cast) -> Workspace:
    """Return bob's workspace, which runs on gpu-1."""
    workspace = make_workspace(cast, cast.bob)
    has_pod(workspace, "pod-1")
    Claim.objects.filter(holder_id=workspace.pk).update(admitted_at=timezone.now() - timedelta(hours=1))
    return workspace


def figures(**of: Any) -> list[tuple[int, int | None]]:
    """Return (time, use in percent) of the tracks."""
    tracks = Track.objects.filter(**of).values_list("pk", flat=True)
    rows = Figure.objects.filter(track_id__in=list(tracks)).order_by("at")
    return [(row.at, row.use_thousandths and row.use_thousandths // 1000) for row in rows]


class TestGpus:
    def test_get_rows_with_what_is_known_and_their_newest_sample(self, cast: Cast, secret: str) -> None:
        told = report(2, sample(utilization_percent=80))
        assert send(secret, batch(report(1), told)).status_code == 204
        gpu = Gpu.objects.get()
        assert (gpu.cluster, gpu.node, gpu.uuid, gpu.index) == (cast.cluster, "gpu-1", GPU_0, 0)
        assert (gpu.name, gpu.memory_mib, gpu.ecc) == ("NVIDIA A100-SXM4-80GB", 81920, True)
        assert (gpu.utilization_percent, gpu.memory_used_mib) == (80, 1024)
        assert gpu.sample == told["gpus"][0]
        state = AgentState.objects.get()
        assert (state.driver_version, state.cuda_version, state.sequence) == ("570.86.15", "12.8", 2)

    def test_that_the_inventory_no_longer_names_are_gone(self, secret: str) -> None:
        send(secret, batch(report(1, sample(), sample(GPU_1)), gpus=[facts(), facts(1, GPU_1)]))
        send(secret, batch(report(2, sample())))
        assert [gpu.sample["state"] for gpu in Gpu.objects.order_by("index")] == ["ok", "gone"]
        assert Gpu.objects.get(index=1).utilization_percent is None
        send(secret, batch(report(3, sample(), sample(GPU_1)), gpus=[facts(), facts(1, GPU_1)]))
        assert [gpu.sample["state"] for gpu in Gpu.objects.order_by("index")] == ["ok", "ok"]

    def test_have_unknown_use_while_nvml_does_not_answer(self, secret: str) -> None:
        send(secret, batch(report(1)))
        told = report(2, troubles=[{"code": "library_missing", "detail": ""}], gpus=[])
        send(secret, batch(told))
        assert Gpu.objects.get().utilization_percent is None
        assert AgentState.objects.get().troubles == told["troubles"]

    def test_that_do_not_answer_have_no_figures(self, secret: str) -> None:
        send(secret, batch(report(1, {"uuid": GPU_0, "state": "failing", "failed": {"power": "unknown"}})))
        assert (Gpu.objects.get().utilization_percent, Figure.objects.get().power_watts) == (None, None)

    def test_of_another_cluster_with_the_same_names_are_others(self, cast: Cast, secret: str) -> None:
        other = type(cast.cluster).objects.create(slug="other", name="Other")
        other.nodes.create(name="gpu-1")
        send(tokens.issue(cast.admin, other, "nodes")[1], batch(report(1, sample(utilization_percent=1))))
        send(secret, batch(report(1, sample(utilization_percent=2))))
        assert Gpu.objects.get(cluster=other).utilization_percent == 1

    def test_cost_the_same_number_of_queries_however_many_they_are(self, secret: str) -> None:
        def queries(count: int, sequence: int) -> int:
            uuids = [f"GPU-{number}" for number in range(count)]
            body = batch(
                report(sequence, *map(sample, uuids)), gpus=[facts(at, uuid) for at, uuid in enumerate(uuids)]
            )
            with CaptureQueriesContext(connection) as seen:
                assert send(secret, body).status_code == 204
            return len(seen)

        queries(8, 1)
        assert queries(8, 2) <= 10
        queries(64, 3)
        assert queries(64, 4) == queries(64, 5) <= 10


class TestWhoHasAGpu:
    def test_comes_from_the_kubelet(self, secret: str, workspace: Workspace) -> None:
        send(secret, batch(report(1, holdings=[holding(pod_of(workspace))])))
        (entry,) = Gpu.objects.get().held_by
        names = {"namespace": "berth-demo", "pod": pod_of(workspace), "container": "workspace"}
        assert entry == names | {"uid": "pod-1"}
        assert [use for _at, use in figures(runs=[workspace.run])] == [50]

    def test_is_known_also_while_nvml_does_not_answer(self, secret: str, workspace: Workspace) -> None:
        send(secret, batch(report(1, ago=5)))
        send(secret, batch(report(2, gpus=[], holdings=[holding(pod_of(workspace))])))
        gpu = Gpu.objects.get()
        assert (len(gpu.held_by), gpu.utilization_percent) == (1, None)

    def test_comes_from_the_pods_row_with_hami(self, secret: str, workspace: Workspace) -> None:
        PodUsage.objects.update(devices=[{"id": GPU_1, "memory_mib": 20480, "cores": 25}])
        told = holding(pod_of(workspace), None, device=f"{GPU_0}-3")
        both = report(1, sample(), sample(GPU_1), holdings=[told])
        send(secret, batch(both, gpus=[facts(), facts(1, GPU_1)]))
        assert [len(gpu.held_by) for gpu in Gpu.objects.order_by("index")] == [0, 1]

    def test_has_its_own_part_of_a_shared_gpu(self, cast: Cast, secret: str, workspace: Workspace) -> None:
        other = make_workspace(cast, cast.carol, name="exp-2")
        PodUsage.objects.create(
            cluster=cast.cluster, uid="pod-2", namespace="berth-second", name=pod_of(other), node="gpu-1",
            run=other.run,
        )  # fmt: skip
        processes = [
            {"pid": 1, "kind": "compute", "memory_mib": 3000, "sm_percent": 30, "pod_uid": "pod-1"},
            {"pid": 2, "kind": "compute", "memory_mib": 500, "pod_uid": "pod-1"},
            {"pid": 3, "kind": "compute", "memory_mib": 9000, "sm_percent": 60, "pod_uid": "pod-2"},
        ]
        held = [
            holding(pod_of(workspace), device=f"{GPU_0}::0"),
            holding(pod_of(other), device=f"{GPU_0}::1", namespace="berth-second"),
        ]
        send(secret, batch(report(1, sample(processes=processes), holdings=held)))
        assert set(Track.objects.get(is_share=False).runs) == {workspace.run, other.run}
        own = Track.objects.get(is_share=True, runs=[workspace.run])
        figure = Figure.objects.get(track_id=own.pk)
        assert (figure.memory_mib, figure.use_thousandths) == (3500, 30_000)

    def test_has_an_instance_of_mig_and_not_its_neighbours(self, secret: str, workspace: Workspace) -> None:
        migs = ["MIG-00000000-0000-4000-8000-00000000000a", "MIG-00000000-0000-4000-8000-00000000000b"]
        told = sample(
            mig=[{"uuid": uuid, "memory_used_mib": mib} for uuid, mib in zip(migs, (700, 9), strict=True)]
        )
        cut = facts(mig=True, mig_devices=[{"uuid": uuid, "name": "1g.10gb"} for uuid in migs])
        held = [holding(pod_of(workspace), migs[0], resource="nvidia.com/mig-1g.10gb")]
        send(secret, batch(report(1, told, holdings=held), gpus=[cut]))
        track = Track.objects.get(runs__contains=[workspace.run])
        assert (track.device, track.label) == (migs[0], "GPU 0 1g.10gb")
        assert Figure.objects.get(track_id=track.pk).memory_mib == 700
        assert Gpu.objects.get().held_by[0]["device"] == migs[0]


class TestTime:
    def test_of_a_report_that_comes_late_is_when_it_was_taken(self, secret: str) -> None:
        reports = [report(at, ago=3600 - at * 60) for at in range(1, 4)]
        send(secret, batch(*reports))
        assert [at for at, _use in figures()] == [int(told["taken_at"]) for told in reports]

    def test_is_ours_where_the_nodes_clock_is_wrong(self, secret: str) -> None:
        hour = 3600
        send(secret, batch(report(1, ago=-hour), report(2, ago=-hour - 5), sent_at=time.time() + hour + 5))
        newest = figures()[-1][0]
        assert abs(newest - time.time()) < 20
        assert newest - figures()[0][0] == pytest.approx(5, abs=1)

    def test_is_never_in_the_future(self, secret: str) -> None:
        send(secret, batch(report(1, ago=-20)))
        assert figures()[0][0] <= time.time()

    def test_decides_which_run_a_late_report_is_about(
        self, cast: Cast, secret: str, workspace: Workspace
    ) -> None:
        """Check with a pod name that the next run has too."""
        now = timezone.now()
        before = Claim.objects.get(holder_id=workspace.pk)
        before.pk, before.state, before.released_at = None, Claim.State.RELEASED, now - timedelta(minutes=20)
        before.admitted_at = now - timedelta(hours=1)
        before.save(force_insert=True)
        Claim.objects.exclude(pk=before.pk).update(admitted_at=now - timedelta(minutes=10))
        held = [holding(pod_of(workspace))]
        told = [report(1, holdings=held, ago=1800), report(2, holdings=held, ago=900)]
        send(secret, batch(*told, report(3, holdings=held)))
        assert len(figures(runs=[before.pk])) == 1
        assert len(figures(runs=[workspace.run])) == 1
        assert len(figures(runs=[])) == 1  # between the two


class TestOnce:
    XID = {"xid": 79, "at": 0.0, "uuid": GPU_0}

    def test_a_report_whose_answer_was_lost_changes_nothing(self, secret: str) -> None:
        body = batch(report(1, ago=5, xids=[self.XID]), report(2))
        assert send(secret, body).status_code == send(secret, body).status_code == 204
        assert (XidEvent.objects.count(), Figure.objects.count()) == (1, 2)

    def test_what_is_new_beside_what_is_not_is_taken(self, secret: str) -> None:
        first, second = report(1, ago=10, xids=[self.XID]), report(2, ago=5, xids=[self.XID])
        send(secret, batch(first))
        send(secret, batch(first, second))
        assert (XidEvent.objects.count(), Figure.objects.count()) == (2, 2)

    def test_another_process_of_the_agent_counts_anew(self, secret: str) -> None:
        send(secret, batch(report(9, ago=5)))
        send(secret, batch(report(1), agent="a2"))
        assert (AgentState.objects.get().sequence, Figure.objects.count()) == (1, 2)

    def test_nothing_is_kept_of_a_batch_that_fails_half_way(
        self, secret: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_args: object) -> None:
            raise RuntimeError

        body = batch(report(1, xids=[self.XID]))
        with monkeypatch.context() as broken:
            broken.setattr("monitoring.health.judging.judge", fail)
            with pytest.raises(RuntimeError):
                send(secret, body)
        assert (Gpu.objects.count(), Figure.objects.count(), AgentState.objects.count()) == (0, 0, 0)
        assert send(secret, body).status_code == 204
        assert XidEvent.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_several_processes_that_take_the_same_reports_take_each_once() -> None:
    cast = make_cast()
    secret = tokens.issue(cast.admin, cast.cluster, "nodes")[1]
    reports = [report(at, ago=60 - at, xids=[TestOnce.XID]) for at in range(1, 9)]
    bodies = [batch(*reports[: 2 * many]) for many in range(1, 5)]
    with crew(len(bodies)) as threads:
        jobs = [partial(on_its_own, partial(send, secret, body)) for body in bodies]
        assert [done.result().status_code for done in threads.at_once(jobs)] == [204] * len(bodies)
    send(secret, bodies[-1])
    assert (XidEvent.objects.count(), Figure.objects.count(), Gpu.objects.count()) == (8, 8, 1)
    assert (Track.objects.count(), AgentState.objects.get().sequence) == (1, 8)


class TestHealth:
    """Judging after reports: only when a fact that health uses has changed, not for every sample."""

    @pytest.fixture
    def judged(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        nodes: list[str] = []
        monkeypatch.setattr("monitoring.health.judging.judge", lambda _cluster, node: nodes.append(node))
        return nodes

    def test_looks_when_something_counts(self, secret: str, judged: list[str], workspace: Workspace) -> None:
        def told(sequence: int, **more: Any) -> int:
            before = len(judged)
            send(secret, batch(report(sequence, **more)))
            return len(judged) - before

        assert told(1) == 1  # the first report
        assert told(2, gpus=[sample(utilization_percent=99, power_watts=400.0)]) == 0
        assert told(3, holdings=[holding(pod_of(workspace))]) == 1
        assert told(4, holdings=[holding(pod_of(workspace))], gpus=[sample(state="lost")]) == 1
        assert told(5, holdings=[holding(pod_of(workspace))], gpus=[sample(state="lost")]) == 0
        assert told(6, gpus=[], troubles=[{"code": "uvm_missing", "detail": ""}]) == 1
        assert told(7, gpus=[], troubles=[{"code": "uvm_missing", "detail": ""}]) == 0

    def test_looks_at_every_xid(self, secret: str, judged: list[str]) -> None:
        send(secret, batch(report(1)))
        send(secret, batch(report(2, xids=[{"xid": 79, "at": time.time()}])))
        assert judged == ["gpu-1", "gpu-1"]
        assert (XidEvent.objects.get().xid, XidEvent.objects.get().gpu) == (79, "")

    def test_takes_problems_without_samples(self, secret: str, judged: list[str]) -> None:
        body = batch() | {"troubles": [{"code": "driver_not_loaded", "detail": "no module"}]}
        assert send(secret, body, "health").status_code == 204
        assert AgentState.objects.get().troubles == body["troubles"]
        assert (judged, Figure.objects.count()) == (["gpu-1"], 0)
