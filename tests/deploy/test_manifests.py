"""Tests of the manifests for production: unprivileged, one image, with exactly the rights that Berth uses."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.kinds import KINDS
from portal.up.plan import REPOSITORY

FOLDER = REPOSITORY / "deploy" / "kubernetes"
Body = dict[str, Any]


@cache
def bodies() -> list[Body]:
    return [body for path in sorted(FOLDER.glob("*.yaml")) for body in yaml.safe_load_all(path.read_text())]


def of_kind(*kinds: str) -> list[Body]:
    return [body for body in bodies() if body["kind"] in kinds]


def by_name(body: Body) -> str:
    return str(body["metadata"]["name"])


@pytest.mark.parametrize("workload", of_kind("Deployment", "Job", "Pod"), ids=by_name)
def test_every_pod_passes_pod_security_restricted(workload: Body) -> None:
    pod = workload["spec"].get("template", workload)["spec"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    for container in pod["containers"]:
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["securityContext"]["capabilities"]["drop"] == ["ALL"]
        assert container["resources"]["limits"]["memory"]


def test_the_parts_are_those_of_a_trial_and_run_one_image() -> None:
    parts = {
        body["metadata"]["labels"]["app.kubernetes.io/component"]: body for body in of_kind("Deployment")
    }
    assert set(parts) == {"web", "worker", "watcher", "collector", "ssh-jump"}
    containers = {part: body["spec"]["template"]["spec"]["containers"][0] for part, body in parts.items()}
    assert len({container["image"] for container in containers.values()}) == 1
    for part, container in containers.items():
        assert {"name": "BERTH_ROLE", "value": part} in container["env"]


def test_people_keep_their_pages_while_another_part_or_the_database_is_away() -> None:
    """/readyz would leave out all web pods for a dead worker; /readyz/web, asked for ever, for a slow database."""
    [container] = pods()["berth-web"]["spec"]["containers"]
    assert container["startupProbe"]["httpGet"]["path"] == "/readyz/web"
    assert container["readinessProbe"]["httpGet"]["path"] == "/healthz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_no_request_reaches_a_pod_that_has_ended() -> None:
    """The pod still serves while proxies learn that it ends; then what is open has time, before it is killed."""
    web = next(body["spec"] for body in of_kind("Deployment") if by_name(body) == "berth-web")
    pod = web["template"]["spec"]
    [container] = pod["containers"]
    [pause] = [int(word) for word in container["lifecycle"]["preStop"]["exec"]["command"] if word.isdigit()]
    assert (
        "--loop=asyncio" in container["command"]
    )  # takes all connections that wait: none is left when it ends
    [graceful] = [int(word.partition("=")[2]) for word in container["command"] if "graceful-shutdown" in word]
    assert pause >= 5 and pause + graceful < pod["terminationGracePeriodSeconds"]
    assert web["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


def test_a_web_pod_waits_for_its_database_and_a_busy_one_stays_in_service() -> None:
    from portal.health import TIMEOUT_SECONDS

    [container] = pods()["berth-web"]["spec"]["containers"]
    start, busy = container["startupProbe"], container["readinessProbe"]
    assert start["timeoutSeconds"] > 2 * TIMEOUT_SECONDS  # the database's check, then the live events'
    assert start["periodSeconds"] * start["failureThreshold"] >= 1200  # nothing restarts it meanwhile
    assert busy["timeoutSeconds"] * busy["failureThreshold"] >= 20


@pytest.mark.parametrize("part", ["worker", "watcher", "collector", "ssh-jump"])
def test_a_part_that_hangs_is_restarted_and_one_without_database_is_not(part: str) -> None:
    [container] = pods()[f"berth-{part}"]["spec"]["containers"]
    file = {one["name"]: one.get("value") for one in container["env"]}["BERTH_SIGN_OF_LIFE"]
    assert file in container["livenessProbe"]["exec"]["command"][-1]


@pytest.mark.parametrize("part", ["worker", "watcher", "collector", "ssh-jump"])
def test_a_pod_that_still_starts_does_not_count_in_a_rollout_or_a_drain(part: str) -> None:
    """It would end the others while nobody does their work: the file is there when the part has begun."""
    [container] = pods()[f"berth-{part}"]["spec"]["containers"]
    file = {one["name"]: one.get("value") for one in container["env"]}["BERTH_SIGN_OF_LIFE"]
    probe = container["startupProbe"]
    assert probe["exec"]["command"] == ["test", "-e", f"{file}.begun"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 1200  # a migration may take long


def test_a_worker_has_time_to_finish_what_it_began() -> None:
    from django.conf import settings

    worker = next(body for body in of_kind("Deployment") if by_name(body) == "berth-worker")
    grace_seconds = worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace_seconds > 2 * settings.Q_CLUSTER["timeout"]


def test_a_migration_that_is_refused_is_not_tried_again() -> None:
    from portal.management.commands.migrate import REFUSED

    [job] = of_kind("Job")
    [rule] = job["spec"]["podFailurePolicy"]["rules"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    exits = {"containerName": container["name"], "operator": "In", "values": [REFUSED]}
    assert rule == {"action": "FailJob", "onExitCodes": exits}


def test_no_right_is_a_wildcard_and_secrets_are_never_watched() -> None:
    for rule in (rule for role in of_kind("ClusterRole") for rule in role["rules"]):
        assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
        if "secrets" in rule["resources"]:
            assert "watch" not in rule["verbs"]


def test_every_resource_with_a_right_is_one_that_berth_knows() -> None:
    known = {(kind.group, kind.plural) for kind in KINDS.values()} | {("", "pods/log")}
    roles = [one for one in of_kind("ClusterRole") if by_name(one) != "berth-agent"]  # never asks the API
    granted = {
        (rule["apiGroups"][0], resource)
        for role in roles
        for rule in role["rules"]
        for resource in rule["resources"]
    }
    assert granted <= known


def test_every_pod_names_its_account_and_only_those_with_rights_get_a_token() -> None:
    bound = {
        subject["name"]
        for binding in of_kind("ClusterRoleBinding", "RoleBinding")
        for subject in binding["subjects"]
        if subject["namespace"] == "berth"
    }
    assert bound == {"berth-watcher", "berth-worker", "berth-collector", "berth-retire"}
    accounts = {
        by_name(one): one for one in of_kind("ServiceAccount") if one["metadata"]["namespace"] == "berth"
    }
    pods_alone = [one for one in of_kind("Pod") if one["metadata"]["namespace"] == "berth"]
    for name, pod in {**pods(), **{by_name(one): one for one in pods_alone}}.items():
        account = pod["spec"]["serviceAccountName"]
        has_token = pod["spec"].get("automountServiceAccountToken", True)
        assert account == name and has_token == (account in bound), name
        assert accounts[account].get("automountServiceAccountToken", True) == has_token, name


def test_the_collector_may_read_pods_and_their_logs_and_nothing_else() -> None:
    [role] = [one for one in of_kind("ClusterRole") if by_name(one) == "berth-collector"]
    assert {resource for rule in role["rules"] for resource in rule["resources"]} == {"pods", "pods/log"}
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_the_example_holds_no_secret() -> None:
    [secret] = of_kind("Secret")
    assert secret["stringData"]["BERTH_SECRET_KEY"] == ""


def test_no_image_is_built_or_run_as_root() -> None:
    for path in Path(REPOSITORY / "deploy" / "images").glob("*/Dockerfile"):
        users = [line.split()[1] for line in path.read_text().splitlines() if line.startswith("USER")]
        assert users[-1] == "1000", path


# --- Networks of Berth's own pods

DATABASE, SMTP = 5432, 587


def pods() -> dict[str, Body]:
    """Pod templates of Berth's namespace, by the name of their workload."""
    kinds = of_kind("Deployment", "Job")
    return {
        by_name(body): body["spec"]["template"] for body in kinds if body["metadata"]["namespace"] == "berth"
    }


def selects(selector: Body, labels: dict[str, str]) -> bool:
    """Match as Kubernetes does: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/"""
    assert {one["operator"] for one in selector.get("matchExpressions", [])} <= {"In"}
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(one["key"]) in one["values"] for one in selector.get("matchExpressions", [])
    )


def rules(name: str, direction: str) -> list[Body]:
    """Rules for the pod in one direction; fails if nothing limits it there: then everything is allowed."""
    labels = pods()[name]["metadata"].get("labels", {}) if "metadata" in pods()[name] else {}
    policies = [
        policy["spec"]
        for policy in of_kind("NetworkPolicy")
        if policy["metadata"]["namespace"] == "berth" and selects(policy["spec"]["podSelector"], labels)
    ]
    assert any(direction in spec["policyTypes"] for spec in policies), name
    return [rule for spec in policies for rule in spec.get(direction.lower(), [])]


def goes_out_to(name: str, port: int, protocol: str = "TCP") -> bool:
    return any(
        one["protocol"] == protocol and one["port"] <= port <= one.get("endPort", one["port"])
        for rule in rules(name, "Egress")
        for one in rule["ports"]
    )


@pytest.mark.parametrize("name", sorted(pods()))
def test_every_pod_reaches_names_and_the_database_and_no_port_that_nobody_named(name: str) -> None:
    assert goes_out_to(name, DATABASE) and goes_out_to(name, 53, "UDP")
    assert all(rule.get("ports") for direction in ("Ingress", "Egress") for rule in rules(name, direction))
    assert not goes_out_to(name, 10250)  # the kubelet's


def test_only_web_and_the_jump_are_reached() -> None:
    reached = {name: rules(name, "Ingress") for name in pods()}
    assert {name for name, found in reached.items() if found} == {"berth-web", "berth-ssh-jump"}
    [jump] = reached["berth-ssh-jump"]
    assert "from" not in jump  # strangers too: its keys decide
    [web] = reached["berth-web"]
    spaces, own = web["from"]
    assert own == {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "berth"}}}
    [named] = spaces["namespaceSelector"]["matchExpressions"]
    assert set(named["values"]) == {"ingress-nginx", "monitoring", "berth-agent"}
    for name, [rule] in (("berth-web", reached["berth-web"]), ("berth-ssh-jump", reached["berth-ssh-jump"])):
        [container] = pods()[name]["spec"]["containers"]
        assert [one["port"] for one in rule["ports"]] == [port["name"] for port in container["ports"]]


def test_each_part_reaches_what_it_works_with() -> None:
    from quotas.namespaces.manifests import JUPYTER_PORT, SSH_PORT

    assert goes_out_to("berth-web", 443) and not goes_out_to("berth-web", 6443)
    for part in ("berth-worker", "berth-watcher", "berth-collector"):
        assert goes_out_to(part, 443) and goes_out_to(part, 6443)
    assert goes_out_to("berth-worker", SMTP)
    for part, workspaces in (("berth-web", True), ("berth-ssh-jump", True), ("berth-worker", True)):
        assert [goes_out_to(part, port) for port in (JUPYTER_PORT, SSH_PORT, 30_022)] == [workspaces] * 3
    assert not goes_out_to("berth-ssh-jump", 6443)
