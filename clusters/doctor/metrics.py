"""Findings about the Metrics Server, which reports the CPU and memory that pods use."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from clusters.api import Api
from clusters.doctor.findings import Finding, ok, warn
from clusters.errors import ClusterRefused, ClusterUnavailable
from clusters.kinds import METRICS
from clusters.models import Cluster


def metrics(api: Api, cluster: Cluster) -> Iterator[Finding]:
    if METRICS not in api.groups():
        yield warn(
            _("The cluster does not report what pods use: people see no CPU and memory usage."),
            _("Install the Kubernetes Metrics Server."),
        )
        return
    try:
        api.list("PodMetrics", namespace="kube-system")
    except (ClusterUnavailable, ClusterRefused) as error:
        if isinstance(error, ClusterRefused) and error.status == 403:
            raise
        yield warn(
            _("The metrics API exists but does not answer: people see no CPU and memory usage."),
            _("Check the pods of the Metrics Server, and `kubectl get apiservices`."),
        )
        return
    yield ok(_("The cluster reports the CPU and memory usage of pods."))
