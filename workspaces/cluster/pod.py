"""Pod of a workspace: Jupyter and SSH, with their probes. Pure."""

from __future__ import annotations

from typing import Any

from clusters.references import complete
from quotas.namespaces.manifests import JUPYTER_PORT, SSH_PORT
from workloads.pods import parts
from workspaces.state.declared import code_server

from .wanted import Wanted

CONTAINER = "workspace"
GRACE_SECONDS = 10
# sshd may need minutes where an image installs things at its start.
STARTUP_SECONDS = 300


def spec(wanted: Wanted, start_files: str) -> dict[str, Any]:
    """Spec of the pod. `start_files`: name of the ConfigMap with the start script."""
    return parts.spec(wanted, container(wanted), start_files, GRACE_SECONDS)


def container(wanted: Wanted) -> dict[str, Any]:
    image = wanted.workspace.image
    jupyter = {"httpGet": {"path": "/api", "port": JUPYTER_PORT}}
    ssh = {"tcpSocket": {"port": SSH_PORT}}
    ports = []
    if image.offers_jupyter:
        ports.append({"name": "jupyter", "containerPort": JUPYTER_PORT, "protocol": "TCP"})
    if image.offers_ssh:
        ports.append({"name": "ssh", "containerPort": SSH_PORT, "protocol": "TCP"})
    return {
        "name": CONTAINER,
        "image": complete(image.reference),
        "imagePullPolicy": image.pull_policy,
        "command": ["/bin/sh", "/berth/start/start.sh"],
        "env": environment(wanted),
        "ports": ports,
        "securityContext": parts.UNPRIVILEGED,
        "resources": parts.resources(wanted),
        "startupProbe": (ssh if image.offers_ssh else jupyter)
        | {"periodSeconds": 1, "failureThreshold": STARTUP_SECONDS},
        "readinessProbe": (jupyter if image.offers_jupyter else ssh)
        | {"periodSeconds": 2, "failureThreshold": 3},
        "volumeMounts": parts.mounts(wanted),
    }


def environment(wanted: Wanted) -> list[dict[str, Any]]:
    ours = {"JUPYTER_TOKEN_FILE": "/berth/secret/jupyter-token", "BERTH_WORKSPACE": wanted.workspace.name}
    if vs_code := code_server(wanted.workspace):
        ours["BERTH_CODE_SERVER"] = str(vs_code.port)
    return parts.environment(wanted, ours, {"POD_IP": "status.podIP"})
