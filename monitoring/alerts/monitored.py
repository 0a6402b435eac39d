"""Sources of alerts that this room has itself."""

from monitoring.alerts import ended_runs, own_parts, sources, troubles, words
from monitoring.post_mortems import words as of_runs


def register() -> None:
    sources.register("trouble", troubles.firings)
    sources.register("berth", own_parts.firings)
    sources.register("runs", ended_runs.firings)
    words.register(of_runs.GROUPS, of_runs.of_group)
