"""Gauges of a ready workspace: what it uses now of its GPUs, CPU, memory and disks, in words and as a bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.figures.series import Figures, Series, of_now
from monitoring.panels import limit_of, said
from storage.models import Kind, Volume
from storage.mounts import mounting
from workloads.sizes.sizing import Size
from workspaces.models import Workspace
from workspaces.templatetags.berth import mib

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

OF_DISKS: dict[str, StrOrPromise] = {
    Kind.HOME: gettext_lazy("Home"),
    Kind.DISK: gettext_lazy("Local disk"),
}


@dataclass(frozen=True)
class Gauge:
    """Bar of one gauge. `percent` is None if it is not known; then `words` say so."""

    name: str
    label: StrOrPromise
    words: str
    percent: int | None = None

    @property
    def width(self) -> str:
        return f"{min(self.percent or 0, 100)}%"


@dataclass(frozen=True)
class Gauges:
    """Bars of all gauges, and what explains those that are not known."""

    all: list[Gauge]
    message: str
    is_simulated: bool


def of(workspace: Workspace) -> Gauges:
    figures, is_share = of_now(workspace)
    found = [_of_gpus(figures), _of_gpu_memory(workspace, figures, is_share=is_share)]
    found = found if workspace.pool.has_gpus and workspace.units else []
    found += [
        _of_limit("cpu", gettext_lazy("CPU"), workspace, figures),
        _of_limit("memory_used", gettext_lazy("Memory"), workspace, figures),
    ]
    mounts = mounting.mounts_of([workspace.pk]).get(workspace.pk, [])
    found += [of_volume(one.volume) for one in mounts if one.volume.kind in OF_DISKS]
    return Gauges(found, figures.message, figures.is_simulated)


def _of_gpus(figures: Figures) -> Gauge:
    """Mean use of its GPUs."""
    label = gettext_lazy("GPU use")
    values = _latest(figures, "gpu_utilization")
    if not values:
        return _unknown("gpu_utilization", label)
    percent = round(sum(values) / len(values))
    words = said(percent, "%")
    if len(values) > 1:
        words = _("%(use)s, mean of %(count)d GPUs") % {"use": words, "count": len(values)}
    return Gauge("gpu_utilization", label, words, percent)


def _of_gpu_memory(workspace: Workspace, figures: Figures, *, is_share: bool) -> Gauge:
    """Memory of all its GPUs together. `is_share`: the figures are of its parts of GPUs, not of whole ones."""
    label = gettext_lazy("GPU memory")
    values = _latest(figures, "gpu_memory_used")
    each = Size.of(workspace).gpu_memory_mib if is_share else limit_of(workspace, "gpu_memory_used")
    if not values:
        return _unknown("gpu_memory_used", label)
    return _used("gpu_memory_used", label, sum(values), (each or 0) * len(values), "MiB")


def _of_limit(name: str, label: StrOrPromise, workspace: Workspace, figures: Figures) -> Gauge:
    values = _latest(figures, name)
    if not values:
        return _unknown(name, label)
    return _used(name, label, values[0], limit_of(workspace, name) or 0, "cores" if name == "cpu" else "MiB")


def of_volume(volume: Volume) -> Gauge:
    label = OF_DISKS[volume.kind]
    if volume.used_percent is None or volume.used_mib is None:
        return _unknown(volume.kind, label)
    of_mib = volume.used_of_mib
    words = _("%(used)s of %(limit)s") % {"used": mib(volume.used_mib), "limit": mib(of_mib)}
    return Gauge(volume.kind, label, words, volume.used_percent)


def _latest(figures: Figures, name: str) -> list[float]:
    """Last value of each line of this name."""
    return [value for line in figures.series if line.name == name if (value := _last(line)) is not None]


def _last(line: Series) -> float | None:
    return next((value for _at, value in reversed(line.points) if value is not None), None)


def _used(name: str, label: StrOrPromise, used: float, limit: float, unit: str) -> Gauge:
    if not limit:
        return Gauge(name, label, said(used, unit))
    words = _("%(used)s of %(limit)s") % {"used": said(used, unit), "limit": said(limit, unit)}
    return Gauge(name, label, words, round(100 * used / limit))


def _unknown(name: str, label: StrOrPromise) -> Gauge:
    return Gauge(name, label, _("not known"))
