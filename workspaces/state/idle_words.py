"""Words for what was measured in an idle workspace. `Measured` is kept in events as a dict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Highest figures since the workspace is idle. None: it has no such thing, as a GPU."""

    gpu_percent: float | None
    cpu_cores: float | None
    kernels: int | None  # busy ones; None: the image offers no Jupyter
    terminals: int
    ssh: int

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


def figures(measured: Mapping[str, Any]) -> str:
    """Return the figures as one line."""
    parts = []
    if measured["gpu_percent"] is not None:
        parts.append(_("GPU at most %(percent)s %%") % {"percent": _short(measured["gpu_percent"])})
    if measured["cpu_cores"] is not None:
        parts.append(_("CPU at most %(cores)s cores") % {"cores": _short(measured["cpu_cores"])})
    if measured["kernels"] is not None:
        parts.append(_("no busy kernel"))
    parts += [_("no program in a terminal"), _("no program over SSH")]
    return ", ".join(parts)


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
