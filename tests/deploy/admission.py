"""Verdict of deploy/kubernetes/admission.yaml on a request, evaluated as an API server does."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import cel
import yaml

from clusters.kinds import KINDS

MANIFEST = Path(__file__).parents[2] / "deploy" / "kubernetes" / "admission.yaml"
BERTH = "system:serviceaccount:berth:berth-watcher"
TENANT = {"app.kubernetes.io/managed-by": "berth", "berth.dev/instance": "1"}

Body = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A write as admission sees it. `space`: labels of the namespace that the object is in."""

    operation: str
    body: Body | None = None
    before: Body | None = None
    space: Body = field(default_factory=lambda: dict(TENANT))
    user: str = BERTH
    subresource: str = ""
    is_dry: bool = False

    @property
    def kind(self) -> Any:
        return KINDS[(self.body or self.before or {})["kind"]]

    def context(self) -> Body:
        request: Body = {
            "operation": self.operation,
            "userInfo": {"username": self.user},
            "resource": {"group": self.kind.group, "resource": self.kind.plural},
            "dryRun": self.is_dry,
        }
        if self.subresource:
            request["subResource"] = self.subresource
        namespace = {"metadata": {"labels": self.space}} if self.kind.namespaced else None
        return {
            "request": request,
            "object": self.body,
            "oldObject": self.before,
            "namespaceObject": namespace,
        }


@lru_cache(maxsize=1)
def bodies() -> list[Body]:
    return list(yaml.safe_load_all(MANIFEST.read_text()))


def policies() -> list[Body]:
    return [body for body in bodies() if body["kind"] == "ValidatingAdmissionPolicy"]


def refusals(request: Request) -> list[str]:
    """Return the messages of all validations that refuse the request."""
    return [message for policy in policies() for message in _of_policy(policy["spec"], request)]


def _of_policy(spec: Body, request: Request) -> list[str]:
    if not any(_matches(rule, request) for rule in spec["matchConstraints"]["resourceRules"]):
        return []
    context = request.context()
    if not all(cel.evaluate(one["expression"], context) for one in spec.get("matchConditions", [])):
        return []
    variables: Body = {}
    for one in spec.get("variables", []):
        try:
            variables[one["name"]] = cel.evaluate(one["expression"], {**context, "variables": variables})
        except Exception:  # only fails who reads it, as in Kubernetes
            continue
    context["variables"] = variables
    return [one["message"] for one in spec["validations"] if not _holds(one["expression"], context)]


def _holds(expression: str, context: Body) -> bool:
    try:
        return bool(cel.evaluate(expression, context))
    except Exception:  # failurePolicy: Fail
        return False


def _matches(rule: Body, request: Request) -> bool:
    kind, part = request.kind, request.subresource
    resource = f"{kind.plural}/{part}" if part else kind.plural
    return (
        request.operation in rule["operations"]
        and bool({"*", kind.group} & set(rule["apiGroups"]))
        and bool({"*/*", resource} & set(rule["resources"]))
        and not (rule.get("scope") == "Namespaced" and not kind.namespaced)
    )
