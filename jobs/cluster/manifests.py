"""Kubernetes objects of a job's attempt, as dicts. Pure."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

from clusters import labels
from clusters.labels import digest_of
from clusters.references import complete
from clusters.site import certificates
from jobs import start
from jobs.models import Attempt, Framework, Job, Part
from jobs.sweeps import written
from quotas.models import Claim
from quotas.namespaces.manifests import tenant_labels
from workloads.pods import parts
from workloads.pods.wanted import Shared
from workloads.pods.wanted import Wanted as OneWanted

START = "berth-job-"  # names of the ConfigMaps with the start script
CONTAINER = "job"
GRACE_SECONDS = 30
# Kubernetes forgets an attempt's Job so long after its end.
KEPT_SECONDS = 3600
LEAST_SECONDS = 1
# Of the first rank; the default of torchrun.
MASTER_PORT = 29500
ITSELF = "127.0.0.1"
# Names in a command that Kubernetes replaces by the values of Berth's variables; no other "$" means anything.
OURS = re.compile(r"\$\$\((BERTH_[A-Z0-9_]+)\)")


@dataclass(frozen=True, kw_only=True)
class Wanted(OneWanted):
    """Input for the objects of one attempt."""

    workload: Job
    part: Part
    attempt: Attempt
    now: datetime
    must_end_at: datetime | None
    nodes: Sequence[str]

    @property
    def is_gang(self) -> bool:
        """True if an attempt has several pods."""
        return self.job.nodes > 1

    @property
    def only_nodes(self) -> Sequence[str]:
        """Nodes that admission chose for a gang.

        All pods come from one template, so none can prefer its own node. On these nodes together there is room for
        all of them, as admission counted; the scheduler counts the same resources. On another node of the pool a pod
        would take what a claim beside it was promised.
        """
        return list(dict.fromkeys(self.nodes)) if self.is_gang else ()

    @property
    def job(self) -> Job:
        return self.workload

    @property
    def name(self) -> str:
        return self.attempt.object_name

    @property
    def secret_name(self) -> str:
        return self.job.object_name

    @cached_property
    def secret_env(self) -> Mapping[str, str]:
        brought = self.shared.connections.get(self.job.pk, {})
        own = self.job.secret.clear_env()
        return {name: value for name, value in brought.items() if name not in self.job.env} | own

    @property
    def labels(self) -> dict[str, str]:
        return super().labels | {labels.JOB: str(self.job.pk)}

    def of_the_attempt(self, api: str, kind: str, **body: Any) -> dict[str, Any]:
        """Return an object of the attempt, which goes with it."""
        made = self.object(api, kind, self.name, **body)
        made["metadata"]["labels"] = self.labels | {labels.RUN: str(self.run)}
        return made


def wanted_of(job: Job, part: Part, attempt: Attempt, claim: Claim, shared: Shared, now: datetime) -> Wanted:
    return Wanted(
        workload=job,
        part=part,
        attempt=attempt,
        instance=shared.instance,
        run=claim.pk,
        node=claim.node,
        requested_cpu_millicores=claim.cpu_millicores,
        requested_memory_mib=claim.memory_mib,
        extra=claim.extra,
        shared=shared,
        now=now,
        must_end_at=claim.must_end_at,
        nodes=claim.nodes,
    )


def job(wanted: Wanted) -> dict[str, Any]:
    """Job of an attempt. Its pods are never replaced, and one that fails ends all: what follows is decided by rows."""
    spec = parts.spec(wanted, container(wanted), start_files(wanted)["metadata"]["name"], GRACE_SECONDS)
    if wanted.is_gang:
        spec["subdomain"] = wanted.name  # its Service's
    body: dict[str, Any] = {
        "completions": wanted.job.nodes,
        "parallelism": wanted.job.nodes,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "podReplacementPolicy": "Failed",
        "ttlSecondsAfterFinished": KEPT_SECONDS,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
            ]
        },
        "template": {"metadata": parts.metadata(wanted), "spec": spec | {"restartPolicy": "Never"}},
    }
    if (seconds := longest_seconds(wanted)) is not None:
        body["activeDeadlineSeconds"] = seconds
    return wanted.of_the_attempt("batch/v1", "Job", spec=body)


def network(wanted: Wanted) -> list[dict[str, Any]]:
    """Service and NetworkPolicy of a gang: its pods have names and reach each other; nobody else reaches them.

    The Service has no address of its own: it makes the names <host>.<Service>, also of pods that are not ready. The
    tenant's one policy cannot say "of the same run", so each attempt brings a policy, and policies add up.
    """
    run = {labels.RUN: str(wanted.run)}
    peers = [{"podSelector": {"matchLabels": run}}]
    service = wanted.of_the_attempt(
        "v1",
        "Service",
        spec={
            "type": "ClusterIP",
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": run,
            "ports": [{"name": "master", "protocol": "TCP", "port": MASTER_PORT, "targetPort": MASTER_PORT}],
        },
    )
    policy = wanted.of_the_attempt(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        spec={
            "podSelector": {"matchLabels": run},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": peers}],
            "egress": [{"to": peers}],
        },
    )
    return [service, policy]


def longest_seconds(wanted: Wanted) -> int | None:
    """Return how long the attempt may run: as its person asked, and as the queue was promised; None: without end."""
    minutes = wanted.job.max_runtime_minutes
    ends = [] if minutes is None else [minutes * 60]
    if wanted.must_end_at is not None:
        ends.append(max(LEAST_SECONDS, int((wanted.must_end_at - wanted.now).total_seconds())))
    return min(ends, default=None)


def container(wanted: Wanted) -> dict[str, Any]:
    image = wanted.job.image
    return {
        "name": CONTAINER,
        "image": complete(image.reference),
        "imagePullPolicy": image.pull_policy,
        "command": ["/bin/sh", "/berth/start/job.sh"],
        "args": [argument(text) for text in wanted.job.command],
        "env": environment(wanted),
        "securityContext": parts.UNPRIVILEGED,
        "resources": parts.resources(wanted),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": parts.mounts(wanted),
    }


def argument(text: str) -> str:
    """Return an argument as Kubernetes takes it: with its dollars as they are, but for Berth's own variables."""
    return OURS.sub(r"$(\1)", parts.literal(text))


def environment(wanted: Wanted) -> list[dict[str, Any]]:
    ours = {
        "PYTHONUNBUFFERED": "1",
        "BERTH_JOB": str(wanted.job.pk),
        "BERTH_INDEX": str(wanted.part.index),
        "BERTH_ATTEMPT": str(wanted.attempt.number),
    }
    values = wanted.part.parameters
    if values:
        ours["BERTH_PARAMETERS"] = json.dumps(values)
    ours |= {f"BERTH_PARAM_{name.upper()}": written(value) for name, value in values.items()}
    if wanted.job.framework:
        ours |= distributed(wanted)
    if (path := checkpoints(wanted)) is not None:
        ours["BERTH_CHECKPOINTS"] = path
    return parts.environment(wanted, ours, {"POD_IP": "status.podIP"})


def distributed(wanted: Wanted) -> dict[str, str]:
    """Variables by which programs find each other; the start script adds those that differ between pods."""
    job = wanted.job
    address, port = master(wanted), str(MASTER_PORT)
    nodes, processes = str(job.nodes), str(job.processes_per_node)
    values = {
        "BERTH_FRAMEWORK": job.framework,
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(job.nodes * job.processes_per_node),
        "LOCAL_WORLD_SIZE": processes,
        "NPROC": processes,
    }
    if job.framework == Framework.TORCHRUN:  # what torchrun takes for options that are left out
        of_torchrun = {
            "NNODES": nodes,
            "NPROC_PER_NODE": processes,
            "MASTER_ADDR": address,
            "MASTER_PORT": port,
        }
        values |= {f"PET_{name}": value for name, value in of_torchrun.items()}
    return values


def master(wanted: Wanted) -> str:
    """Return the name of the first rank's pod, which is the same on every cluster."""
    return f"{wanted.name}-0.{wanted.name}" if wanted.is_gang else ITSELF


def checkpoints(wanted: Wanted) -> str | None:
    """Return where the volume for checkpoints is mounted; None: they are in the home."""
    paths = (one.path for one in wanted.mounts if one.volume_id == wanted.job.checkpoints)
    return next(paths, None)


def secret(wanted: Wanted) -> dict[str, Any]:
    """Secret of the job, the same for all its attempts."""
    values = {parts.secret_env_key(name): value for name, value in wanted.secret_env.items()}
    values["script"] = wanted.job.secret.clear_script()
    data = {key: base64.b64encode(value.encode()).decode() for key, value in sorted(values.items())}
    return wanted.object("v1", "Secret", wanted.secret_name, type="Opaque", data=data)


def start_files(wanted: Wanted) -> dict[str, Any]:
    """ConfigMap with the start script and the container's users, named after its content; it never changes."""
    image = wanted.job.image
    trusted = wanted.cluster.trusted_certificates
    digest, data = _start_data(image.username, image.uid, image.gid, image.home, image.shell, trusted)
    body = wanted.object("v1", "ConfigMap", f"{START}{digest}", data=dict(data), immutable=True)
    body["metadata"]["labels"] = tenant_labels(wanted.job.tenant, wanted.instance)
    return body


@lru_cache
def _start_data(
    username: str, uid: int, gid: int, home: str, shell: str, trusted: str
) -> tuple[str, Mapping[str, str]]:
    data = {
        **start.files(),
        **parts.people(username, uid, gid, home, shell),
        **certificates.files(trusted),
    }
    return digest_of(data), data
