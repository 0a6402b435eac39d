"""Run the commands of docs/operator/install.md as they stand there, as far as a trial cluster and kubectl can.

A trial cluster serves no admission policies, which tests/deploy/admission_on_a_cluster.py tries on a real API server,
and plays its pods: the migration's pod ends well by itself. No Helm is at hand: its values are checked and rendered.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from devcluster.testing.cluster import DevCluster, running
from portal.up.plan import REPOSITORY
from tests.deploy.helm import merged
from tests.deploy.rendering import CHART, chart, defaults

PAGE = (REPOSITORY / "docs/operator/install.md").read_text()
COPIED = ("deploy/kubernetes", "deploy/chart")
POLICIES = "  - admission.yaml\n"
TEMPLATE = "  template:\n    spec:\n"
ENDS_WELL = '  template:\n    metadata: {annotations: {devcluster.local/ends: "1:0"}}\n    spec:\n'


def block(word: str) -> str:
    """Return the commands of the page that have the word."""
    [found] = [text for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) if word in text]
    return str(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of what the commands read, without what a trial cluster lacks."""
    for name in COPIED:
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    replace(tmp_path / "deploy/kubernetes/kustomization.yaml", POLICIES, "")
    replace(tmp_path / "deploy/kubernetes/migrate.yaml", TEMPLATE, ENDS_WELL)
    return tmp_path


def replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, file.name
    file.write_text(text.replace(old, new))


def run(commands: str, folder: Path, kubeconfig: Path | None = None) -> str:
    """Run commands as somebody who stops at the first error. Return what they print."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", commands],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_values_of_the_page_make_all_parts_and_the_ingress(folder: Path) -> None:
    writes, _helm, _more = block("helm upgrade").partition("helm upgrade")
    run(writes, folder)
    values: dict[str, Any] = yaml.safe_load((folder / "berth-values.yaml").read_text())
    whole = merged(defaults(), values)
    jsonschema_rs.validate(json.loads((CHART / "values.schema.json").read_text()), whole)
    made = {
        (body["kind"], body["metadata"]["name"])
        for name, text in chart().render(whole, "berth").items()
        if name.endswith(".yaml")
        for body in yaml.safe_load_all(text)
        if body
    }
    assert {("Deployment", "berth-web"), ("Job", "berth-migrate"), ("Ingress", "berth")} <= made


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on this machine")
def test_the_commands_lead_to_all_parts_running(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cluster: DevCluster
    for cluster in running(tmp_path_factory.mktemp("cluster"), "--pods", "played"):
        run(block("kubectl apply -f deploy/kubernetes/namespace.yaml"), folder, cluster.kubeconfig)
        secret = cluster.get("/api/v1/namespaces/berth/secrets/berth")
        assert secret["data"].keys() == {"BERTH_SECRET_KEY", "BERTH_METRICS_TOKEN", "DATABASE_URL"}
        run(block("kubectl apply -k berth-site"), folder, cluster.kubeconfig)
        first, _exec = block("createsuperuser").splitlines()
        assert "successfully rolled out" in run(first, folder, cluster.kubeconfig)
        web = cluster.get("/apis/apps/v1/namespaces/berth/deployments/berth-web")
        [container] = web["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "registry.example/berth/portal:1"
        [ingress] = cluster.get("/apis/networking.k8s.io/v1/namespaces/berth/ingresses")["items"]
        assert [rule["host"] for rule in ingress["spec"]["rules"]] == [
            "berth.example",
            "*.berth-workspaces.example",
        ]
        # Again: an upgrade.
        run(block("kubectl apply -k berth-site"), folder, cluster.kubeconfig)
