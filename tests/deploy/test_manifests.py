"""Tests of the manifests for production: unprivileged, one image, with exactly the rights that Berth uses."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters.kinds import KINDS
from portal.up.plan import REPOSITORY

FOLDER = REPOSITORY / "deploy" / "kubernetes"
Body = dict[str, Any]


def bodies() -> list[Body]:
    return [body for path in sorted(FOLDER.glob("*.yaml")) for body in yaml.safe_load_all(path.read_text())]


def of_kind(*kinds: str) -> list[Body]:
    return [body for body in bodies() if body["kind"] in kinds]


def by_name(body: Body) -> str:
    return str(body["metadata"]["name"])


@pytest.mark.parametrize("workload", of_kind("Deployment", "Job"), ids=by_name)
def test_every_pod_passes_pod_security_restricted(workload: Body) -> None:
    pod = workload["spec"]["template"]["spec"]
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
    assert set(parts) == {"web", "worker", "watcher", "ssh-jump"}
    containers = {part: body["spec"]["template"]["spec"]["containers"][0] for part, body in parts.items()}
    assert len({container["image"] for container in containers.values()}) == 1
    for part, container in containers.items():
        assert {"name": "BERTH_ROLE", "value": part} in container["env"]


def test_people_keep_their_pages_while_another_part_is_dead() -> None:
    """Probe /readyz/web: /readyz would take all web processes out of service because of a dead worker."""
    web = next(body for body in of_kind("Deployment") if by_name(body) == "berth-web")
    [container] = web["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz/web"
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz"


def test_a_worker_has_time_to_finish_what_it_began() -> None:
    from django.conf import settings

    worker = next(body for body in of_kind("Deployment") if by_name(body) == "berth-worker")
    grace_seconds = worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace_seconds > 2 * settings.Q_CLUSTER["timeout"]


def test_no_right_is_a_wildcard_and_secrets_are_never_watched() -> None:
    [role] = of_kind("ClusterRole")
    for rule in role["rules"]:
        assert "*" not in rule["apiGroups"] + rule["resources"] + rule["verbs"]
        if "secrets" in rule["resources"]:
            assert "watch" not in rule["verbs"]


def test_every_resource_with_a_right_is_one_that_berth_knows() -> None:
    known = {(kind.group, kind.plural) for kind in KINDS.values()} | {
        ("", "pods/log"),
        ("apps", "statefulsets/finalizers"),
    }
    [role] = of_kind("ClusterRole")
    granted = {(rule["apiGroups"][0], resource) for rule in role["rules"] for resource in rule["resources"]}
    assert granted <= known


def test_the_example_holds_no_secret() -> None:
    [secret] = of_kind("Secret")
    assert secret["stringData"]["BERTH_SECRET_KEY"] == ""


def test_no_image_is_built_or_run_as_root() -> None:
    for path in Path(REPOSITORY / "deploy" / "images").glob("*/Dockerfile"):
        users = [line.split()[1] for line in path.read_text().splitlines() if line.startswith("USER")]
        assert users[-1] == "1000", path
