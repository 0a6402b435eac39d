"""Cluster roles: the default ones, and those that are aggregated from others by labels."""

from collections.abc import Iterable
from pathlib import Path

import yaml

from devcluster.api import Api, Writer
from devcluster.controllers.base import Controller
from devcluster.resources import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, Obj
from devcluster.store import Change
from devcluster.values.selectors import match_labels

DEFAULTS = Path(__file__).parents[1] / "access" / "default_roles.yaml"
_AGGREGATE = "rbac.authorization.k8s.io/aggregate-to-"
_WRITER = Writer("clusterrole-aggregation-controller")


def create_defaults(api: Api) -> None:
    """Create missing default roles; leave those that somebody changed."""
    file = yaml.safe_load(DEFAULTS.read_text())
    for name, entry in file["roles"].items():
        if api.store.get(CLUSTER_ROLE, "", name) is None:
            api.create(CLUSTER_ROLE, "", _role(name, entry), Writer("kube-apiserver"))
    for name, groups in file["bindings"].items():
        if api.store.get(CLUSTER_ROLE_BINDING, "", name) is None:
            subjects = [{"kind": "Group", "name": group} for group in groups]
            reference = {"kind": "ClusterRole", "name": name}
            body: Obj = {"metadata": _metadata(name), "subjects": subjects, "roleRef": reference}
            api.create(CLUSTER_ROLE_BINDING, "", body, Writer("kube-apiserver"))


def _role(name: str, entry: Obj) -> Obj:
    body: Obj = {"metadata": _metadata(name), "rules": entry.get("rules")}
    if whole := entry.get("part_of"):
        body["metadata"]["labels"][_AGGREGATE + whole] = "true"
    if label := entry.get("aggregates"):
        chosen = {"matchLabels": {_AGGREGATE + label: "true"}}
        body["aggregationRule"] = {"clusterRoleSelectors": [chosen]}
    return body


def _metadata(name: str) -> Obj:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }


class ClusterRoleController(Controller[str]):
    def keys(self, change: Change) -> Iterable[str]:
        if change.kind is CLUSTER_ROLE:
            for role in self.api.store.each(CLUSTER_ROLE):
                if role.get("aggregationRule"):
                    yield role["metadata"]["name"]

    async def reconcile(self, key: str) -> float | None:
        """Set the role's rules to those of all roles that it selects."""
        role = self.api.store.get(CLUSTER_ROLE, "", key)
        if role is None or not role.get("aggregationRule"):
            return None
        rules: list[Obj] = []
        for selector in role["aggregationRule"].get("clusterRoleSelectors") or []:
            for part in self.api.store.all(CLUSTER_ROLE):
                labels = part["metadata"].get("labels") or {}
                if part["metadata"]["name"] != key and match_labels(selector, labels):
                    rules += [rule for rule in part.get("rules") or [] if rule not in rules]
        if rules != role.get("rules"):
            self.api.update(CLUSTER_ROLE, "", key, lambda o: o | {"rules": rules}, _WRITER)
        return None
