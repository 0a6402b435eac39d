"""Objects of a workspace. Golden manifests compare the pod as a whole (`test_golden_manifests.py`)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from clusters.labels import HASH, RUN
from clusters.models import Cluster
from devcluster.kubelet.containers.config import expand
from tests.workspaces.builders import HOME, ID, INSTANCE, home_mount, wanted, workspace
from workloads.models import Image
from workloads.pods import parts
from workloads.pods.wanted import label_value
from workspaces.cluster import manifests, pod
from workspaces.cluster.wanted import SecretValues
from workspaces.models import Workspace

OF_TENANT = {
    "app.kubernetes.io/managed-by": "berth",
    "berth.dev/instance": str(INSTANCE),
    "berth.dev/tenant": "demo",
}
OF_WORKSPACE = OF_TENANT | {"berth.dev/owner": "alice-uni", "berth.dev/workspace": str(ID)}


def test_every_object_says_whose_it_is() -> None:
    bodies = [
        manifests.pod(wanted()),
        manifests.secret(wanted()),
        manifests.service(wanted()),
    ]
    for body in bodies:
        assert body["metadata"]["namespace"] == "berth-demo"
        assert body["metadata"]["labels"].items() >= OF_WORKSPACE.items()
    shared = manifests.start_files(wanted())["metadata"]
    assert (shared["namespace"], shared["labels"]) == ("berth-demo", OF_TENANT)


def test_a_pod_requests_what_its_pool_has_beside_gpus() -> None:
    found = parts.resources(wanted(extra={"rdma/hca": 2}))
    assert found["requests"]["rdma/hca"] == found["limits"]["rdma/hca"] == "2"


def environment(row: Workspace | None = None) -> dict[str, str | None]:
    entries = pod.environment(wanted(row))
    values = {entry["name"]: entry.get("value") for entry in entries}
    assert len(values) == len(entries), "a name stands twice"
    return values


@pytest.mark.parametrize(("offers_jupyter", "port"), [(True, "13337"), (False, None)])
def test_code_server_is_started_where_jupyter_is_the_way_to_it(
    offers_jupyter: bool, port: str | None
) -> None:
    image = Image(
        slug="code", reference="example/code:1", has_code_server=True, offers_jupyter=offers_jupyter
    )
    assert environment(workspace(image=image)).get("BERTH_CODE_SERVER") == port


def test_a_proxy_of_the_cluster_is_in_the_environment_in_both_spellings() -> None:
    row = workspace()
    row.pool.cluster.http_proxy = row.pool.cluster.https_proxy = "http://proxy.lab:3128"
    row.pool.cluster.no_proxy = ".lab,10.0.0.0/8"
    env = environment(row)
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        assert env[name] == "http://proxy.lab:3128"
    assert env["no_proxy"] == env["NO_PROXY"] == "localhost,127.0.0.1,::1,.lab,10.0.0.0/8"


def test_a_users_own_proxy_wins_in_either_spelling() -> None:
    row = workspace(env={"HTTPS_PROXY": "http://mine:1"})
    row.pool.cluster.http_proxy = row.pool.cluster.https_proxy = "http://proxy.lab:3128"
    env = environment(row)
    assert env["HTTPS_PROXY"] == "http://mine:1"
    assert "https_proxy" not in env  # programs that read this name first would ignore the user's
    assert env["http_proxy"] == "http://proxy.lab:3128"


def test_a_users_own_variables_replace_berths() -> None:
    assert environment(workspace(env={"USER": "me", "SHELL": "/bin/zsh"}))["USER"] == "me"


def test_pull_secrets_are_those_of_the_cluster_and_of_the_pool() -> None:
    assert "imagePullSecrets" not in pod.spec(wanted(), "start")
    row = workspace()
    row.pool.cluster.image_pull_secrets = ["registry", "mirror"]
    row.pool.image_pull_secrets = ["ngc", "registry"]
    names = [secret["name"] for secret in pod.spec(wanted(row), "start")["imagePullSecrets"]]
    assert names == ["registry", "mirror", "ngc"]
    row.pool.cluster.registries = "sealed"
    assert pod.spec(wanted(row), "start")["imagePullSecrets"][0] == {"name": "berth-registries"}


def test_what_the_site_sets_comes_before_what_berth_and_the_person_set() -> None:
    row = workspace(env={"https_proxy": "", "PIP_INDEX_URL": "https://mine.lab"})
    before = manifests.start_files(wanted(row))
    row.pool.cluster.pod_environment = "PIP_INDEX_URL=https://mirror.lab\r\nHTTPS_PROXY=http://proxy.lab\r\n\r\nHF_ENDPOINT=https://hf.lab/?a=b\nSHELL=x"
    env = environment(row)
    assert (env["PIP_INDEX_URL"], env["HF_ENDPOINT"]) == ("https://mine.lab", "https://hf.lab/?a=b")
    assert "HTTPS_PROXY" not in env and env["SHELL"] != "x"
    assert manifests.start_files(wanted(row)) == before
    row.pool.cluster.trusted_certificates = "one\r\ntwo"
    after = manifests.start_files(wanted(row))
    assert after["data"] == before["data"] | {"certificates.pem": "one\ntwo\n"}
    assert after["metadata"]["name"] != before["metadata"]["name"]


def test_secret_values_are_only_in_the_secret() -> None:
    secret = manifests.secret(wanted())
    assert base64.b64decode(secret["data"]["env.API_KEY"]) == b"hush"
    others = [
        manifests.pod(wanted()),
        manifests.start_files(wanted()),
        manifests.service(wanted()),
    ]
    assert "hush" not in str(others)
    assert "t0ken" not in str(others)
    assert "hush" not in repr(wanted())


def test_a_home_is_where_the_image_has_its_own() -> None:
    row = workspace()
    row.image.home = "/root/of/others"
    assert {"name": f"vol-{HOME}", "mountPath": "/root/of/others"} in parts.mounts(wanted(row))
    claim = {"claimName": f"vol-{HOME}"}
    assert {"name": f"vol-{HOME}", "persistentVolumeClaim": claim} in parts.volumes(wanted(row), "start")


def test_a_volume_that_an_earlier_version_made_is_mounted_by_the_name_that_it_has() -> None:
    old = home_mount()
    old.volume.claim_name = f"ws-{ID}-home"
    claims = [one.get("persistentVolumeClaim") for one in parts.volumes(wanted(mounts=[old]), "start")]
    assert {"claimName": f"ws-{ID}-home"} in claims


def test_nothing_owns_what_outlives_a_run_and_only_the_pod_names_one() -> None:
    outliving = [manifests.secret(wanted()), manifests.service(wanted())]
    for body in outliving:
        assert "ownerReferences" not in body["metadata"]
        assert RUN not in body["metadata"]["labels"]
    assert manifests.pod(wanted())["metadata"]["labels"][RUN] == str(wanted().run)


BOTH = {"jupyter": (8888, 8888), "ssh": (22, 2222)}
SSH = {"ssh": (22, 2222)}
BALANCED, AT_NODES, INSIDE = (
    Cluster.Exposure.LOAD_BALANCER,
    Cluster.Exposure.NODE_PORT,
    Cluster.Exposure.PORTAL,
)


def service_of(row: Workspace, exposure: str, connection: str = "in-cluster") -> tuple[dict[str, Any], Any]:
    """Return the spec of the Service, and its ports by name."""
    row.pool.cluster.exposure, row.pool.cluster.connection = exposure, connection
    spec = manifests.service(wanted(row))["spec"]
    return spec, {port["name"]: (port["port"], port["targetPort"]) for port in spec["ports"]}


@pytest.mark.parametrize(
    ("exposure", "kind", "node_ports"),
    [(BALANCED, "LoadBalancer", False), (AT_NODES, "NodePort", None), (INSIDE, "ClusterIP", None)],
)
def test_the_service_follows_the_clusters_exposure(exposure: str, kind: str, node_ports: bool | None) -> None:
    spec, _ports = service_of(workspace(), exposure)
    assert (spec["type"], spec.get("allocateLoadBalancerNodePorts")) == (kind, node_ports)
    assert spec["publishNotReadyAddresses"] is True  # SSH answers while Jupyter is frozen


@pytest.mark.parametrize(
    ("exposure", "connection", "domain", "published"),
    [
        (BALANCED, "in-cluster", "ws.example", SSH),
        (BALANCED, "in-cluster", "", BOTH),  # people open it at that address
        (BALANCED, "kubeconfig", "ws.example", BOTH),  # Berth itself comes by that address
        *(
            (AT_NODES, connection, domain, SSH)
            for connection in ("in-cluster", "kubeconfig")
            for domain in ("ws", "")
        ),
        (INSIDE, "in-cluster", "ws.example", BOTH),
    ],
)
def test_jupyter_is_published_only_where_somebody_opens_it_there(
    settings: Any, exposure: str, connection: str, domain: str, published: Any
) -> None:
    settings.WORKSPACE_DOMAIN = domain
    assert service_of(workspace(), exposure, connection)[1] == published


def test_an_image_without_ssh_publishes_nothing_at_the_nodes() -> None:
    row = workspace()
    row.image.offers_ssh = False
    spec, ports = service_of(row, AT_NODES)
    assert (spec["type"], ports) == ("ClusterIP", {"jupyter": (8888, 8888)})


def start_files(**of_image: Any) -> dict[str, Any]:
    row = workspace()
    for name, value in of_image.items():
        setattr(row.image, name, value)
    return manifests.start_files(wanted(row))


def test_the_uid_has_a_name_inside() -> None:
    data = start_files()["data"]
    assert "jovyan:x:1000:1000:jovyan:/home/jovyan:/bin/bash\n" in data["passwd"]
    assert "start.sh" in data


def test_start_files_are_named_after_what_they_hold_and_the_pod_mounts_them() -> None:
    files = start_files()
    name = files["metadata"]["name"]
    assert files["immutable"] is True
    volumes = manifests.pod(wanted())["spec"]["volumes"]
    assert name in [volume.get("configMap", {}).get("name") for volume in volumes]
    assert start_files(username="ada")["metadata"]["name"] != name
    assert manifests.start_files(wanted(workspace(env={"A": "1"}))) == files, "the environment is not in it"


def test_the_digest_of_the_service_changes_with_it_or_with_the_secret_and_only_then() -> None:
    def digest(*keys: str, ssh_port: int = 22) -> str:
        values = SecretValues(
            jupyter_token="t", gateway_token="g", host_key="h", authorized_keys=keys, env={}
        )
        row = workspace()
        row.pool.cluster.ssh_service_port = ssh_port
        return str(manifests.service(wanted(row, secret=values))["metadata"]["annotations"][HASH])

    assert digest("a") == digest("a")
    assert len({digest("a"), digest("a", "b"), digest("a", ssh_port=2200)}) == 3


def test_any_user_name_makes_a_valid_label() -> None:
    assert label_value("alice@uni.example+x") == "alice-uni.example-x"
    assert label_value("_müller_") == "m-ller"
    assert len(label_value("a" * 100)) == 63


@pytest.mark.parametrize(
    "value", ["plain", "pa$$word", "$(HOME)", "$$(HOME)", "$$$(HOME)", "5$", "$", "$(", ""]
)
def test_kubernetes_expands_an_escaped_value_to_the_original(value: str) -> None:
    sent = environment(workspace(env={"MINE": value}))["MINE"]
    assert sent is not None
    assert expand(sent, {"HOME": "/home/jovyan"}) == value


def test_a_declared_port_is_announced_to_prometheus() -> None:
    row = workspace(metrics_port=9090, metrics_path="/figures")
    announced = manifests.pod(wanted(row))["metadata"]["annotations"]
    assert {name: value for name, value in announced.items() if name.startswith("prometheus.io/")} == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9090",
        "prometheus.io/path": "/figures",
    }
    plain = manifests.pod(wanted(workspace()))["metadata"]["annotations"]
    assert not [name for name in plain if name.startswith("prometheus.io/")]


def test_hami_gets_the_list_of_gpus_to_avoid() -> None:
    row = workspace()
    row.pool.sharing = "hami"
    annotations = manifests.pod(wanted(row, bad_gpus=("GPU-a", "GPU-b")))["metadata"]["annotations"]
    assert annotations["nvidia.com/nouse-gpuuuid"] == "GPU-a,GPU-b"


@pytest.mark.parametrize("labels", [{}, {"zone": "a"}])
def test_a_pod_does_not_start_on_a_node_that_is_unwell(labels: dict[str, str]) -> None:
    row = workspace()
    row.pool.node_labels = labels
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    unwell = {"gpu-3": "node_lost", "gpu-7": "node_lost"}
    affinity = pod.spec(wanted(row, unwell_nodes=unwell), "start")["affinity"]["nodeAffinity"]
    [term] = affinity[required]["nodeSelectorTerms"]
    fields = [(one["operator"], one["values"]) for one in term["matchFields"]]
    assert fields == [("NotIn", ["gpu-3"]), ("NotIn", ["gpu-7"])]
    assert bool(term.get("matchExpressions")) == bool(labels)
