"""Berth's own account on a cluster, with the rights of all parts in deploy/kubernetes/rbac.yaml and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import yaml

from clusters.permissions import SECRETS_ROLE
from devcluster.testing.kube import Kube

MANIFEST = Path(__file__).parents[1] / "deploy" / "kubernetes" / "rbac.yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


class OwnRights:
    """Account with a unique name, so that a Berth installed on the cluster is not changed."""

    def __init__(self, kubeconfig: str | Path, folder: Path) -> None:
        self.name = f"berth-{uuid4().hex[:8]}"
        self._admin = Kube(Path(kubeconfig))
        space, named = self._admin.namespace(self.name), {"metadata": {"name": self.name}}
        self._admin.create(f"{space}/serviceaccounts", named)
        roles = [body for body in yaml.safe_load_all(MANIFEST.read_text()) if body["kind"] == "ClusterRole"]
        self.rules: list[dict[str, Any]] = []
        for role in roles:
            if role["metadata"]["name"] == SECRETS_ROLE:  # Berth binds it for each tenant
                self._admin.apply(f"{RBAC}/clusterroles/{SECRETS_ROLE}", role)
            else:
                self.rules += role["rules"]
        self._admin.create(f"{RBAC}/clusterroles", named | {"rules": self.rules})
        self._admin.create(
            f"{RBAC}/clusterrolebindings",
            named
            | {
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "ClusterRole",
                    "name": self.name,
                },
                "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.name}],
            },
        )
        token = self._admin.create(f"{space}/serviceaccounts/{self.name}/token", {"spec": {}})["status"][
            "token"
        ]
        config = yaml.safe_load(Path(kubeconfig).read_text())
        config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
        self.kubeconfig = folder / f"{self.name}.kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def change(self, rules: list[dict[str, Any]]) -> None:
        """Replace the rules of the account's ClusterRole."""
        self._admin.call("PATCH", f"{RBAC}/clusterroles/{self.name}", {"rules": rules}, "merge")

    def clear_away(self) -> None:
        for path in (f"{RBAC}/clusterrolebindings", f"{RBAC}/clusterroles", "/api/v1/namespaces"):
            self._admin.call("DELETE", f"{path}/{self.name}")


def bind(cluster: Any) -> None:
    """Let tenants' namespaces get Secrets, as a watcher of the cluster does by `clusters/watch/granting.py`."""
    from clusters.connections import connect
    from clusters.isolation import granting

    cluster.secret_accounts = granting.accounts(cluster, connect(cluster))
