"""Objects of an attempt on several nodes: one Job, names, who reaches whom, where its pods start, what they read."""

from __future__ import annotations

from typing import Any

from jobs.cluster import manifests
from jobs.cluster.manifests import Wanted
from storage.models import Mount, Volume
from tests.jobs.builders import ID, RUN, VOLUME, job, wanted

NAME = f"job-{RUN}"
OF_THE_RUN = {"berth.dev/run": str(RUN)}


def gang(nodes: tuple[str, ...] = ("gpu-2", "gpu-1", "gpu-2"), **fields: Any) -> Wanted:
    row = job(**({"nodes": len(nodes), "processes_per_node": 4, "framework": "ranks"} | fields))
    return wanted(row, node=nodes[0], nodes=list(nodes))


def environment(of: Wanted) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in manifests.environment(of)}


def terms(of: Wanted) -> list[dict[str, Any]]:
    spec = manifests.job(of)["spec"]["template"]["spec"]
    found: list[dict[str, Any]] = spec["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    return found


def test_one_job_has_all_pods_and_replaces_none() -> None:
    spec = manifests.job(gang())["spec"]
    assert (spec["completions"], spec["parallelism"], spec["completionMode"]) == (3, 3, "Indexed")
    assert (spec["backoffLimit"], spec["podReplacementPolicy"]) == (0, "Failed")
    assert spec["podFailurePolicy"]["rules"][0]["action"] == "FailJob"


def test_pods_have_names_before_they_are_ready() -> None:
    service, _policy = manifests.network(gang())
    assert (service["metadata"]["name"], service["spec"]["clusterIP"]) == (NAME, "None")
    assert service["spec"]["publishNotReadyAddresses"] is True
    template = manifests.job(gang())["spec"]["template"]
    assert template["spec"]["subdomain"] == NAME
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert environment(gang())["MASTER_ADDR"] == f"{NAME}-0.{NAME}"
    assert len(f"{NAME}-63") <= 63


def test_pods_of_a_run_reach_each_other_and_nobody_else_reaches_them() -> None:
    _service, policy = manifests.network(gang())
    peers = [{"podSelector": {"matchLabels": OF_THE_RUN}}]
    assert policy["spec"] == {
        "podSelector": {"matchLabels": OF_THE_RUN},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": peers}],
        "egress": [{"to": peers}],
    }


def test_every_object_says_whose_it_is() -> None:
    for body in (manifests.job(gang()), *manifests.network(gang())):
        labels = body["metadata"]["labels"]
        assert (labels["berth.dev/job"], labels["berth.dev/run"]) == (str(ID), str(RUN))
        assert (body["metadata"]["namespace"], body["metadata"]["name"]) == ("berth-demo", NAME)


def test_pods_start_on_the_chosen_nodes_alone() -> None:
    found = [term["matchFields"] for term in terms(gang())]
    assert found == [
        [{"key": "metadata.name", "operator": "In", "values": [name]}] for name in ("gpu-2", "gpu-1")
    ]
    assert all(term["matchExpressions"] for term in terms(gang()))  # still of the pool


def test_a_node_that_is_out_of_order_takes_none_of_them() -> None:
    of = gang(("gpu-1", "gpu-2"))
    of.__dict__["unwell_nodes"] = {"gpu-2": "node_not_ready"}
    out = {"key": "metadata.name", "operator": "NotIn", "values": ["gpu-2"]}
    assert all(out in term["matchFields"] for term in terms(of))


def test_one_node_needs_no_name_and_no_policy() -> None:
    of = gang(("gpu-1",))
    assert not of.is_gang
    template = manifests.job(of)["spec"]["template"]["spec"]
    assert "subdomain" not in template
    assert "preferredDuringSchedulingIgnoredDuringExecution" in template["affinity"]["nodeAffinity"]
    values = environment(of)
    assert (values["MASTER_ADDR"], values["WORLD_SIZE"], values["NPROC"]) == ("127.0.0.1", "4", "4")


def test_torchrun_reads_the_options_that_are_left_out() -> None:
    values = environment(gang(framework="torchrun"))
    assert (values["PET_NNODES"], values["PET_NPROC_PER_NODE"], values["WORLD_SIZE"]) == ("3", "4", "12")
    assert values["PET_MASTER_ADDR"] == values["MASTER_ADDR"]


def test_an_ordinary_job_is_told_nothing_of_others() -> None:
    assert (
        not {"MASTER_ADDR", "WORLD_SIZE", "BERTH_FRAMEWORK", "BERTH_CHECKPOINTS"}
        & environment(wanted()).keys()
    )


def test_checkpoints_are_on_the_volume_that_was_named() -> None:
    of = wanted(job(checkpoints=VOLUME))
    of.shared.__dict__["mounts"] = {ID: [Mount(volume=Volume(id=VOLUME), path="/data", read_only=False)]}
    assert environment(of)["BERTH_CHECKPOINTS"] == "/data"
