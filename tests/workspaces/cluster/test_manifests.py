"""Objects of a workspace: unprivileged, owned, and never two pods."""

from __future__ import annotations

import base64

import pytest

from clusters.models import Cluster
from devcluster.kubelet.containers.config import expand
from tests.workspaces.builders import ID, INSTANCE, RUN, wanted, workspace
from workspaces.cluster import manifests, pod
from workspaces.cluster.digest import HASH
from workspaces.cluster.wanted import SecretValues, label_value

OWNER = {"metadata": {"name": f"ws-{ID}", "uid": "s1"}}


def test_every_object_says_whose_it_is() -> None:
    bodies = [
        *manifests.volume_claims(wanted()),
        manifests.stateful_set(wanted(), replicas=1),
        manifests.secret(wanted(), OWNER),
        manifests.config_map(wanted(), OWNER),
        manifests.service(wanted(), OWNER),
    ]
    for body in bodies:
        assert body["metadata"]["namespace"] == "berth-demo"
        assert (
            body["metadata"]["labels"].items()
            >= {
                "app.kubernetes.io/managed-by": "berth",
                "berth.dev/instance": str(INSTANCE),
                "berth.dev/tenant": "demo",
                "berth.dev/owner": "alice-uni",
                "berth.dev/workspace": str(ID),
            }.items()
        )


def test_the_pod_can_do_nothing_it_should_not() -> None:
    spec = pod.spec(wanted())
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "fsGroup": 1000,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert not any("hostPath" in volume for volume in spec["volumes"])


def test_gpus_stand_in_requests_and_limits_while_cpu_and_memory_may_be_overcommitted() -> None:
    resources = pod.resources(wanted())
    assert resources["requests"] == {
        "cpu": "2",
        "memory": "8192Mi",
        "ephemeral-storage": "1024Mi",
        "nvidia.com/gpu": "1",
    }
    assert resources["limits"]["cpu"] == "4"
    assert resources["limits"]["memory"] == "16384Mi"
    assert resources["limits"]["nvidia.com/gpu"] == "1"


def test_a_container_without_gpus_sees_none() -> None:
    with_gpu = {entry["name"] for entry in pod.environment(wanted())}
    assert "NVIDIA_VISIBLE_DEVICES" not in with_gpu
    without = {entry["name"]: entry.get("value") for entry in pod.environment(wanted(workspace(units=0)))}
    assert without["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "nvidia.com/gpu" not in pod.resources(wanted(workspace(units=0)))["limits"]


def test_a_proxy_of_the_cluster_is_in_the_environment_in_both_spellings() -> None:
    row = workspace()
    row.pool.cluster.http_proxy = row.pool.cluster.https_proxy = "http://proxy.lab:3128"
    row.pool.cluster.no_proxy = ".lab,10.0.0.0/8"
    env = {entry["name"]: entry.get("value") for entry in pod.environment(wanted(row))}
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        assert env[name] == "http://proxy.lab:3128"
    assert env["no_proxy"] == env["NO_PROXY"] == "localhost,127.0.0.1,::1,.lab,10.0.0.0/8"
    assert not any("proxy" in entry["name"].lower() for entry in pod.environment(wanted()))


def test_a_users_own_proxy_wins_however_it_is_spelled() -> None:
    row = workspace(env={"HTTPS_PROXY": "http://mine:1"})
    row.pool.cluster.http_proxy = row.pool.cluster.https_proxy = "http://proxy.lab:3128"
    env = {entry["name"]: entry.get("value") for entry in pod.environment(wanted(row))}
    assert env["HTTPS_PROXY"] == "http://mine:1"
    assert "https_proxy" not in env  # programs that read this name first would ignore the user's
    assert env["http_proxy"] == "http://proxy.lab:3128"


def test_pull_secrets_are_those_of_the_cluster_and_of_the_pool() -> None:
    assert "imagePullSecrets" not in pod.spec(wanted())
    row = workspace()
    row.pool.cluster.image_pull_secrets = ["registry", "mirror"]
    row.pool.image_pull_secrets = ["ngc", "registry"]
    names = [secret["name"] for secret in pod.spec(wanted(row))["imagePullSecrets"]]
    assert names == ["registry", "mirror", "ngc"]


def test_values_of_the_environment_arrive_as_they_were_given() -> None:
    entries = {entry["name"]: entry for entry in pod.environment(wanted())}
    # Kubernetes turns every $$ into one dollar.
    assert entries["MY_ENV"]["value"] == 'a b "q" $$x $$(HOME)'


def test_no_name_stands_twice_in_the_environment() -> None:
    row = workspace(env={"USER": "me", "SHELL": "/bin/zsh"})
    names = [entry["name"] for entry in pod.environment(wanted(row))]
    assert len(names) == len(set(names))
    assert {e["name"]: e.get("value") for e in pod.environment(wanted(row))}["USER"] == "me"


def test_secret_values_are_only_in_the_secret() -> None:
    secret = manifests.secret(wanted(), OWNER)
    assert base64.b64decode(secret["data"]["env.API_KEY"]) == b"hush"
    others = [
        manifests.stateful_set(wanted(), replicas=1),
        manifests.config_map(wanted(), OWNER),
        manifests.service(wanted(), OWNER),
    ]
    assert "hush" not in str(others)
    assert "t0ken" not in str(others)
    assert "hush" not in repr(wanted())


def test_the_pool_is_required_and_the_chosen_node_preferred() -> None:
    affinity = pod.spec(wanted())["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-A100-SXM4-80GB"]}
    ]
    (preferred,) = affinity["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["preference"]["matchFields"][0]["values"] == ["gpu-1"]


def test_a_lost_node_evicts_nobody_by_a_timer() -> None:
    tolerations = pod.spec(wanted())["tolerations"]
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        assert {"key": key, "operator": "Exists", "effect": "NoExecute"} in tolerations


def test_a_local_disk_is_claimed_and_mounted_only_when_asked_for() -> None:
    assert [c["metadata"]["name"] for c in manifests.volume_claims(wanted())] == [f"ws-{ID}-home"]
    with_disk = wanted(workspace(disk_mib=2048))
    home, disk = manifests.volume_claims(with_disk)
    assert (home["spec"]["storageClassName"], disk["spec"]["storageClassName"]) == (
        "net-shared",
        "local-fast",
    )
    assert {"name": "disk", "mountPath": "/disk"} in pod.mounts(with_disk)


def test_volumes_outlive_the_run_and_all_else_hangs_on_the_stateful_set() -> None:
    assert "ownerReferences" not in manifests.volume_claims(wanted())[0]["metadata"]
    for body in (manifests.secret, manifests.config_map, manifests.service):
        (owner,) = body(wanted(), OWNER)["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"]) == ("StatefulSet", "s1")


def test_the_pod_cannot_vanish_before_its_end_was_seen() -> None:
    body = manifests.stateful_set(wanted(), replicas=1)
    assert body["spec"]["template"]["metadata"]["finalizers"] == [manifests.FINALIZER]
    assert body["spec"]["template"]["metadata"]["labels"]["berth.dev/run"] == str(RUN)


def test_the_service_keeps_answering_while_jupyter_is_frozen_and_takes_no_node_ports() -> None:
    spec = manifests.service(wanted(), OWNER)["spec"]
    assert spec["publishNotReadyAddresses"] is True
    assert spec["allocateLoadBalancerNodePorts"] is False
    assert {port["name"]: (port["port"], port["targetPort"]) for port in spec["ports"]} == {
        "jupyter": (8888, 8888),
        "ssh": (22, 2222),
    }


def test_node_ports_are_a_setting_of_the_cluster() -> None:
    row = workspace()
    row.pool.cluster.exposure = Cluster.Exposure.NODE_PORT
    spec = manifests.service(wanted(row), OWNER)["spec"]
    assert spec["type"] == "NodePort"
    assert "allocateLoadBalancerNodePorts" not in spec


def test_a_cluster_reached_through_the_portal_shows_nothing_outside() -> None:
    row = workspace()
    row.pool.cluster.exposure = Cluster.Exposure.PORTAL
    spec = manifests.service(wanted(row), OWNER)["spec"]
    assert spec["type"] == "ClusterIP"
    assert "allocateLoadBalancerNodePorts" not in spec


def test_the_uid_has_a_name_inside() -> None:
    data = manifests.config_map(wanted(), OWNER)["data"]
    assert "jovyan:x:1000:1000:jovyan:/home/jovyan:/bin/bash\n" in data["passwd"]
    assert "start.sh" in data


def test_a_digest_changes_with_what_is_wanted_and_only_then() -> None:
    def digest(row_env: dict[str, str]) -> str:
        body = manifests.config_map(wanted(workspace(env=row_env)), OWNER)
        return str(manifests.stamped(body)["metadata"]["annotations"][HASH])

    assert digest({}) == digest({"A": "1"})  # the ConfigMap does not hold the environment

    def secret_digest(keys: list[str]) -> str:
        values = SecretValues(jupyter_token="t", host_key="h", authorized_keys=keys, env={})
        return str(
            manifests.stamped(manifests.secret(wanted(secret=values), OWNER))["metadata"]["annotations"][HASH]
        )

    assert secret_digest(["a"]) == secret_digest(["a"])
    assert secret_digest(["a"]) != secret_digest(["a", "b"])


def test_any_user_name_makes_a_valid_label() -> None:
    assert label_value("alice@uni.example+x") == "alice-uni.example-x"
    assert label_value("_müller_") == "m-ller"
    assert len(label_value("a" * 100)) == 63


@pytest.mark.parametrize(
    "value", ["plain", "pa$$word", "$(HOME)", "$$(HOME)", "$$$(HOME)", "5$", "$", "$(", ""]
)
def test_a_value_arrives_as_it_was_given(value: str) -> None:
    assert expand(pod.literal(value), {"HOME": "/home/jovyan"}) == value


def test_hami_is_told_which_gpus_do_not_work() -> None:
    row = workspace()
    row.pool.sharing = "hami"
    told = manifests.stateful_set(wanted(row, bad_gpus=("GPU-a", "GPU-b")), replicas=1)
    annotations = told["spec"]["template"]["metadata"]["annotations"]
    assert annotations["nvidia.com/nouse-gpuuuid"] == "GPU-a,GPU-b"
    none = manifests.stateful_set(wanted(row), replicas=1)["spec"]["template"]["metadata"]["annotations"]
    assert "nvidia.com/nouse-gpuuuid" not in none


@pytest.mark.parametrize("labels", [{}, {"zone": "a"}])
def test_a_pod_does_not_start_on_a_node_that_is_unwell(labels: dict[str, str]) -> None:
    row = workspace()
    row.pool.node_labels = labels
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    unwell = {"gpu-3": "node_lost", "gpu-7": "node_lost"}
    affinity = pod.spec(wanted(row, unwell_nodes=unwell))["affinity"]["nodeAffinity"]
    [term] = affinity[required]["nodeSelectorTerms"]
    told = [(one["operator"], one["values"]) for one in term["matchFields"]]
    assert told == [("NotIn", ["gpu-3"]), ("NotIn", ["gpu-7"])]
    assert bool(term.get("matchExpressions")) == bool(labels)
