"""Tests of what somebody who runs code in web's pod can do with what is there: docs/operator/power.md lists it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection

from accounts.credentials.secrets import decrypt, encrypt
from devcluster.testing.cluster import running
from devcluster.testing.kube import Kube
from portal.management.rights import account_of
from portal.queue.data import NoTask, unpack
from tests.cast import make_cast
from tests.closed_tables import try_all
from tests.deploy.helm import merged
from tests.deploy.rendering import chart, defaults, values_in
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Phase

OWN = {"secret": {"parts": {"web": "berth-database-web", "migrate": "berth-database-migrate"}}}


def web_pod(**values: Any) -> dict[str, Any]:
    """Return web's pod as production with several clusters renders it."""
    wanted = merged(merged(defaults(), values_in("values-clusters.yaml")), merged(OWN, values))
    bodies = yaml.safe_load_all(chart().render(wanted, "berth")["web.yaml"])
    return dict(next(bodies)["spec"]["template"]["spec"])


def secrets_in(pod: dict[str, Any]) -> set[str]:
    """Return the names of all Secrets of which the pod has anything."""
    found = set()
    for container in pod["containers"]:
        found |= {one["secretRef"]["name"] for one in container["envFrom"] if "secretRef" in one}
        found |= {one["valueFrom"]["secretKeyRef"]["name"] for one in container["env"] if "valueFrom" in one}
    for volume in pod["volumes"]:
        found |= {volume["secret"]["secretName"]} if "secret" in volume else set()
        found |= {one["secret"]["name"] for one in volume.get("projected", {}).get("sources", [])}
    return found


@pytest.mark.parametrize("as_files", [False, True])
def test_it_has_no_token_no_kubeconfig_and_no_account_of_the_owner(as_files: bool) -> None:
    pod = web_pod(secret={**OWN["secret"], "asFiles": as_files})
    assert pod["automountServiceAccountToken"] is False and pod["serviceAccountName"] == "berth-web"
    assert secrets_in(pod) == {"berth", "berth-database-web"}
    mounts = {one["mountPath"] for container in pod["containers"] for one in container["volumeMounts"]}
    assert mounts <= {"/tmp", "/etc/berth/secrets"}
    assert not any("hostPath" in volume for volume in pod["volumes"])
    assert not pod.get("hostNetwork") and not pod.get("hostPID")


@pytest.mark.slow
def test_the_clusters_api_tells_it_nothing(tmp_path: Path) -> None:
    for cluster in running(tmp_path, "--pods", "played"):
        stranger = Kube(cluster.kubeconfig)
        nobody = {"Authorization": ""}
        tried = [
            ("GET", "/api/v1/secrets"),
            ("GET", "/api/v1/namespaces/berth/secrets/berth"),
            ("GET", "/api/v1/pods"),
            ("GET", "/api/v1/nodes"),
            ("POST", "/api/v1/namespaces/default/pods"),
            ("POST", "/api/v1/namespaces/berth/serviceaccounts/berth-watcher/token"),
            ("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"),
        ]
        for method, path in tried:
            code, _answer = stranger.call(method, path, {} if method == "POST" else None, headers=nobody)
            assert code in (401, 403), (method, path, code)


@pytest.mark.parametrize(
    "name", ["os.system", "subprocess.run", "django.core.management.call_command", "builtins.eval"]
)
def test_the_worker_runs_no_function_that_is_no_task(name: str) -> None:
    told = {
        "id": "1",
        "name": "x",
        "func": name,
        "args": ["id"],
        "kwargs": {},
        "started": "2026-11-28T00:00:00Z",
    }
    with pytest.raises(NoTask):
        unpack(json.dumps(told))


@pytest.mark.django_db
@pytest.mark.skipif(
    "berth-tests-" not in os.environ.get("DATABASE_URL", ""), reason="a database without its account"
)
def test_the_database_refuses_all_but_rows_and_these_it_can_change() -> None:
    assert try_all("web") > 20
    cast = make_cast()
    workspace = make_workspace(cast, cast.alice, Phase.READY)
    cast.cluster.kubeconfig_path = "/etc/berth/clusters/east/kubeconfig"
    cast.cluster.save()
    with connection.cursor() as cursor:
        cursor.execute(f"SET ROLE {account_of('berth', 'web')}")
        # What it can, as docs/operator/power.md says.
        cursor.execute("UPDATE accounts_user SET is_staff = true WHERE username = 'bob'")
        cursor.execute("UPDATE workspaces_workspace SET name = 'other' WHERE id = %s", [workspace.pk])
        assert cursor.rowcount == 1
        cursor.execute("SELECT * FROM clusters_cluster")
        assert "PRIVATE KEY" not in str(cursor.fetchall())  # a mounted kubeconfig is no row
        cursor.execute("RESET ROLE")
    assert (
        decrypt(encrypt("a pasted kubeconfig")) == "a pasted kubeconfig"
    )  # with BERTH_SECRET_KEY, which it has
