"""Codes of a report's problems."""

from __future__ import annotations

from monitoring.agent.schema import Look


def codes(report: Look) -> set[str]:
    return {trouble["code"] for trouble in report["troubles"]} - {"kubelet_silent"}
