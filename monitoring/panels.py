"""Charts of the Metrics tab, one for each kind of figure, with the latest, mean and highest value as text.

`static/js/metrics.js` writes the same texts for later figures: change words in both places.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from monitoring.figures.series import UNITS, Figures, Series
from quotas import sharing
from workspaces.models import Workspace
from workspaces.templatetags.berth import mib

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

NOTHING = "–"
OF_GPUS: dict[str, StrOrPromise] = {
    "gpu_utilization": gettext_lazy("GPU use"),
    "gpu_memory_used": gettext_lazy("GPU memory"),
    "gpu_power": gettext_lazy("Power"),
    "gpu_temperature": gettext_lazy("Temperature"),
}
OF_POD: dict[str, StrOrPromise] = {
    "cpu": gettext_lazy("CPU cores"),
    "memory_used": gettext_lazy("Memory"),
}


@dataclass(frozen=True)
class Row:
    """Line of a chart."""

    label: str
    latest: str
    mean: str
    peak: str


@dataclass(frozen=True)
class Panel:
    name: str
    title: StrOrPromise
    unit: str
    # Upper limit, drawn as a line in the chart.
    limit: float | None
    limit_words: str
    rows: list[Row] = field(default_factory=list)


def panels(workspace: Workspace, figures: Figures) -> list[Panel]:
    """Return the panels for a workspace; a panel without data has no rows."""
    names = {**OF_GPUS, **OF_POD} if workspace.pool.has_gpus else OF_POD
    return [_panel(name, title, limit_of(workspace, name), figures) for name, title in names.items()]


def gpu_panels(figures: Figures, memory_mib: int | None) -> list[Panel]:
    """Return the panels for a node's GPUs, whoever has them."""
    limits = {"gpu_memory_used": memory_mib}
    return [_panel(name, title, limits.get(name), figures) for name, title in OF_GPUS.items()]


def limit_of(workspace: Workspace, name: str) -> float | None:
    """Return the workspace's limit. For GPU memory it is the whole GPU's, as the figure is the whole GPU's too."""
    match name:
        case "cpu":
            return workspace.cpu_millicores / 1000
        case "memory_used":
            return workspace.memory_mib
        case "gpu_memory_used":
            pool = workspace.pool
            return (pool.unit_memory_mib if sharing.of(pool).is_instance else None) or pool.gpu_memory_mib
        case _:
            return None


def said(value: float | None, unit: str) -> str:
    """Return the figure with its unit; a dash for None."""
    if value is None:
        return NOTHING
    match unit:
        case "%":
            return _("%(percent)s%%") % {"percent": round(value)}
        case "MiB":
            return mib(round(value))
        case "cores":
            return f"{value:.2f}".rstrip("0").rstrip(".")
        case _:
            return f"{round(value)}\N{NO-BREAK SPACE}{unit}"


def row_of(line: Series) -> Row:
    told = [value for _at, value in line.points if value is not None]
    mean = sum(told) / len(told) if told else None
    latest = told[-1] if told else None
    words = [said(value, line.unit) for value in (latest, mean, max(told, default=None))]
    return Row(line.label, *words)


def _panel(name: str, title: StrOrPromise, limit: float | None, figures: Figures) -> Panel:
    lines = [line for line in figures.series if line.name == name]
    unit = UNITS[name]
    words = _("Limit: %(amount)s") % {"amount": said(limit, unit)} if limit else ""
    return Panel(name, title, unit, limit, words, [row_of(line) for line in lines])
