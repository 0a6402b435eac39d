"""Tests of the node agent as deployed: no more rights than it needs, no more code than it runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pynvml
import pytest
import yaml

from monitoring.agent import __main__, causes, cgroups, kubelet, volumes
from portal.up.plan import REPOSITORY

DOCKERFILE = REPOSITORY / "deploy/images/agent/Dockerfile"
PAGE = (REPOSITORY / "docs/operator/agent.md").read_text()


@pytest.fixture(scope="module")
def manifest() -> list[Any]:
    return list(yaml.safe_load_all((REPOSITORY / "deploy/kubernetes/agent.yaml").read_text()))


@pytest.fixture(scope="module")
def daemon_set(manifest: list[Any]) -> Any:
    namespace, found = manifest[0], next(one for one in manifest if one["kind"] == "DaemonSet")
    assert found["metadata"]["namespace"] == namespace["metadata"]["name"] != "berth"
    return found


def test_its_metrics_are_for_one_namespace_alone(manifest: list[Any], daemon_set: Any) -> None:
    policy, template = manifest[-1], daemon_set["spec"]["template"]
    assert policy["metadata"]["namespace"] == daemon_set["metadata"]["namespace"]
    assert policy["spec"]["podSelector"]["matchLabels"] == template["metadata"]["labels"]
    [rule] = policy["spec"]["ingress"]
    assert [port["port"] for port in rule["ports"]] == [template["spec"]["containers"][0]["ports"][0]["name"]]
    assert rule["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    ]
    assert "`kubernetes.io/metadata.name`" in PAGE


def test_it_reaches_names_and_berth_alone(manifest: list[Any]) -> None:
    spec = manifest[-1]["spec"]
    assert "Egress" in spec["policyTypes"]
    names, berth, outside = spec["egress"]
    assert {port["port"] for port in names["ports"]} == {53, 5353}
    [peer] = berth["to"]
    [web] = [
        body
        for body in yaml.safe_load_all((REPOSITORY / "deploy/kubernetes/web.yaml").read_text())
        if body["kind"] == "Deployment"
    ]
    assert peer["podSelector"]["matchLabels"] == web["spec"]["template"]["metadata"]["labels"]
    [container] = web["spec"]["template"]["spec"]["containers"]
    assert [port["port"] for port in berth["ports"]] == [port["containerPort"] for port in container["ports"]]
    assert [port["port"] for port in outside["ports"]] == [443, volumes.PORT]
    assert all("ipBlock" in one for one in outside["to"])


def test_it_has_the_node_s_processes_and_two_folders_to_read_and_no_power(daemon_set: Any) -> None:
    pod = daemon_set["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert (pod["hostPID"], pod.get("hostNetwork"), pod.get("hostIPC")) == (True, None, None)
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
    (volume, counts, token, own), (mount, counts_at, token_at, own_at) = (
        pod["volumes"],
        container["volumeMounts"],
    )
    assert (token["secret"]["optional"], token_at["readOnly"]) == (True, True)
    assert volume["hostPath"]["path"] == mount["mountPath"] == str(kubelet.SOCKET.parent)
    assert (counts["hostPath"]["path"], counts_at["mountPath"]) == ("/sys/fs/cgroup", str(cgroups.FOLDER))
    assert mount["readOnly"]
    assert counts_at["readOnly"]
    assert (list(own), own_at["readOnly"]) == (["name", "projected"], True)
    assert container["resources"]["limits"]["memory"] == "128Mi"
    assert not {"nvidia.com/gpu"} & set(container["resources"]["limits"])


def test_its_token_opens_the_kubelet_s_figures_alone(manifest: list[Any], daemon_set: Any) -> None:
    [role] = [one for one in manifest if one["kind"] == "ClusterRole"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes/stats"], "verbs": ["get"]}]
    [binding] = [one for one in manifest if one["kind"] == "ClusterRoleBinding"]
    [subject] = binding["subjects"]
    assert subject["name"] == daemon_set["spec"]["template"]["spec"]["serviceAccountName"]
    assert not [one for one in manifest if one["kind"] in ("Role", "RoleBinding")]


def test_it_leaves_a_node_whose_driver_is_about_to_change(daemon_set: Any) -> None:
    affinity = daemon_set["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    for term in terms:
        [paused] = [one for one in term["matchExpressions"] if one["operator"] == "NotIn"]
        assert paused["key"] == "nvidia.com/gpu.deploy.client"
        assert set(paused["values"]) == {"paused-for-driver-upgrade", "paused-for-mig-change"}


def test_every_setting_of_the_manifest_and_the_page_is_one_the_agent_reads(daemon_set: Any) -> None:
    read = set(re.findall(r"BERTH_AGENT_[A-Z_]+", str(__main__.__doc__)))
    [container] = daemon_set["spec"]["template"]["spec"]["containers"]
    told = {one["name"] for one in container["env"] if one["name"].startswith("BERTH_")}
    assert told <= read
    assert set(re.findall(r"BERTH_AGENT_[A-Z_]+", PAGE)) == read


def test_it_is_told_its_node_and_its_own_pod_by_kubernetes(daemon_set: Any) -> None:
    """Check both names: Berth knows the node by one; the kubelet's list of pods is complete if it has the other."""
    [container] = daemon_set["spec"]["template"]["spec"]["containers"]
    fields = {
        one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"]
        for one in container["env"]
        if "fieldRef" in one.get("valueFrom", {})
    }
    assert (fields["BERTH_AGENT_NODE"], fields["BERTH_AGENT_POD"]) == ("spec.nodeName", "metadata.name")


def test_its_page_names_every_trouble() -> None:
    codes = set(re.findall(r"^\| `(\w+)`", str(causes.__doc__), re.MULTILINE))
    table = PAGE.partition("## What is wrong")[2].partition("\n## ")[0]
    first_column = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    assert {code for cell in first_column for code in re.findall(r"`(\w+)`", cell)} == codes


def test_the_image_holds_what_the_agent_runs(tmp_path: Path) -> None:
    """Check that the Dockerfile's COPY lines, and pynvml, are enough for the agent to start."""
    for source, to in re.findall(r"^COPY (\S+) (\S+)$", DOCKERFILE.read_text(), re.MULTILINE):
        if (REPOSITORY / source).is_dir():
            # Other processes may compile modules meanwhile.
            compiled = shutil.ignore_patterns("__pycache__")
            shutil.copytree(REPOSITORY / source, tmp_path / to, ignore=compiled)
        else:
            (tmp_path / to).mkdir(parents=True)
            shutil.copy(REPOSITORY / source, tmp_path / to)
    shutil.copy(pynvml.__file__, tmp_path)
    told = subprocess.run(
        [sys.executable, "-S", "-m", "monitoring.agent", "--once"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(told.stdout)["look"]["troubles"]


def test_its_packages_are_pynvml_alone_as_the_portal_pins_it() -> None:
    pinned = re.compile(r"^(\S+)==(\S+) ", re.MULTILINE)
    [(name, version)] = pinned.findall((REPOSITORY / "requirements/agent.txt").read_text())
    assert name == "nvidia-ml-py"
    assert (name, version) in pinned.findall((REPOSITORY / "requirements/runtime.txt").read_text())
