"""Files that are rendered from deploy/chart, so that kubectl and Helm apply the same objects.

.venv/bin/python -m tests.deploy.rendering    # writes them anew: `make manifests`
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.helm import Chart, merged

DEPLOY = Path(__file__).parents[2] / "deploy"
CHART = DEPLOY / "chart"
NAMESPACE = "berth"
HEADER = "# Rendered from deploy/chart by `make manifests`: change it there.\n"
# Parts of Berth with the default values: the base of Kustomize.
BASE = (
    "admission",
    "collector",
    "disruption",
    "migrate",
    "network",
    "rbac",
    "settings",
    "ssh-jump",
    "watcher",
    "web",
    "worker",
)
# What a site may add, with its values. Kustomize fills in the hosts: `*.domain` gets the domain of workspaces.
ADDED: dict[str, tuple[str, dict[str, Any]]] = {
    "kubernetes/agent.yaml": ("agent", {"agent": {"enabled": True}}),
    "kubernetes/retire.yaml": ("retire", {"retire": True}),
    "kubernetes/ingress/ingress.yaml": (
        "ingress",
        {"ingress": {"enabled": True}, "workspaceDomain": "domain"},
    ),
    "kubernetes/gateway/gateway.yaml": (
        "gateway",
        {"gateway": {"enabled": True, "className": "envoy"}, "workspaceDomain": "domain"},
    ),
    "kubernetes/priority/priority.yaml": ("priority", {"priorityClass": {"name": "berth", "create": True}}),
    "prometheus/monitors.yaml": (
        "monitors",
        {
            "agent": {"enabled": True},
            "monitoring": {
                "enabled": True,
                "inNamespace": "monitoring",
                "tokenSecret": {"name": "berth-metrics-token"},
            },
        },
    ),
}


@cache
def chart() -> Chart:
    return Chart({path.name: path.read_text() for path in sorted((CHART / "templates").iterdir())})


def defaults() -> dict[str, Any]:
    return dict(yaml.safe_load((CHART / "values.yaml").read_text()))


def values_in(name: str) -> dict[str, Any]:
    """Return the default values with those of a file of the chart over them."""
    return dict(merged(defaults(), yaml.safe_load((CHART / name).read_text())))


@cache
def objects(name: str) -> tuple[dict[str, Any], ...]:
    """Return all objects that the chart makes of a file of values."""
    texts = chart().render(values_in(name), NAMESPACE)
    found = (yaml.safe_load_all(text) for file, text in texts.items() if file.endswith(".yaml"))
    return tuple(body for bodies in found for body in bodies if body)


def files() -> dict[Path, str]:
    """Return the text of each file that is rendered."""
    base: dict[str, tuple[str, dict[str, Any]]] = {f"kubernetes/{name}.yaml": (name, {}) for name in BASE}
    return {
        DEPLOY / path: HEADER
        + chart().render(merged(defaults(), values), NAMESPACE)[f"{template}.yaml"].lstrip("\n")
        for path, (template, values) in (base | ADDED).items()
    }


if __name__ == "__main__":
    for path, text in files().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
