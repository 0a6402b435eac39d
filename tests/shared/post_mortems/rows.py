"""Post-mortems as rows: views and API need no run that ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from monitoring.models import PostMortem
from workspaces.models import Workspace

FACTS: dict[str, Any] = {
    "nodes": ["gpu-1"],
    "size": {"gpus": 1, "cpu": 4, "memory_mib": 16384, "nodes": 1},
    "gpus": [
        {
            "uuid": "GPU-0", "name": "NVIDIA A100", "index": 0, "node": "gpu-1", "out_code": "gpu_lost",
            "health": {"state": "lost", "temperature_celsius": 61},
        }
    ],
    "gpu_use_percent": 87.5,
    "gpu_memory_peak_mib": 70_000,
    "memory_peak_mib": 15_900,
    "ends": [
        {
            "pod": "ws-1", "node": "gpu-1", "container": "workspace", "exit_code": 137, "signal": None,
            "reason": "OOMKilled", "started_at": "2026-11-27T10:00:00Z", "finished_at": "2026-11-27T11:00:00Z",
        }
    ],
    "pods": [{"name": "ws-1", "node": "gpu-1", "phase": "Failed", "reason": None, "message": None, "deleted_at": None}],
    "events": [
        {
            "pod": "ws-1", "at": "2026-11-27T11:00:00Z", "type": "Warning", "reason": "BackOff",
            "message": "Back-off restarting failed container", "count": 2, "source": "kubelet",
        }
    ],
    "oom_kills": {"kills": 2, "last_at": "2026-11-27T11:00:00+00:00"},
    "xids": [{"at": "2026-11-27T10:59:00+00:00", "xid": 79, "gpu": "GPU-0", "node": "gpu-1"}],
    "troubles": [
        {
            "about": "gpu", "subject": "GPU-0", "code": "gpu_lost", "data": {"xid": 79}, "takes_out": True,
            "since": "2026-11-27T10:59:00+00:00", "ended_at": None,
        }
    ],
    "node": {
        "name": "gpu-1", "ready": True, "unschedulable": False, "out_code": None, "gpus_out_code": None,
        "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}],
        "system": {"kubeletVersion": "v1.36.2"}, "seen_at": "2026-11-27T11:00:03+00:00",
    },
    "agent": {
        "seen_at": "2026-11-27T11:00:01+00:00", "silent": False, "driver_version": "570.86", "cuda_version": "12.8",
        "troubles": [], "counts_oom_kills": True, "simulated": True,
    },
    "volumes": [
        {
            "volume": "00000000-0000-4000-8000-000000000009", "name": "home", "kind": "home", "path": "/home/jovyan",
            "read_only": False, "version": None, "phase": "ready", "used_percent": 96, "full": True,
            "size_mib": 10240, "problem": None, "attached_to": [],
            "lease": {"mode": "writer", "holders": 1, "waiting": 0},
        }
    ],
    "story": [
        {"at": "2026-11-27T11:00:00+00:00", "level": "warning", "code": "interrupted", "data": {"reason": "Error"}}
    ],
    "namespace_deleted_at": None,
    "missing": ["log_end"],
}  # fmt: skip


def make_post_mortem(workspace: Workspace, **changes: Any) -> PostMortem:
    """Make the whole record of a workspace's run, which ran out of memory."""
    now = timezone.now()
    values: dict[str, Any] = {
        "id": workspace.run,
        "tenant": workspace.tenant,
        "owner": workspace.owner,
        "cluster": workspace.pool.cluster,
        "holder_kind": "workspace",
        "holder_id": workspace.pk,
        "name": workspace.name,
        "image": workspace.image.slug,
        "pool": workspace.pool.slug,
        "node": "gpu-1",
        "happened": PostMortem.Happened.RESTARTED,
        "code": "container_restarted",
        "verdict": "out_of_memory",
        "started_at": now - timedelta(hours=1),
        "ended_at": now,
        "gathered_at": now,
        "facts": FACTS,
        "gpus": ["GPU-0"],
        "lines": [{"at": now.isoformat(), "text": "loading the whole data set"}],
    }
    return PostMortem.objects.create(**(values | changes))
