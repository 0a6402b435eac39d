"""Log format of all processes: structlog renders, the standard library transports."""

import logging
import re
from collections.abc import MutableMapping
from typing import Any

import structlog

SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]

ROOMS = {
    "portal",
    "monitoring",
    "jobs",
    "workloads",
    "workspaces",
    "storage",
    "quotas",
    "clusters",
    "accounts",
    "vitals",
}
_AFTER_AN_ADDRESS = "\"'`<>()[]{},;:."


class OwnDetails(logging.Filter):
    """Filter that keeps what Berth's own code says, and of libraries nothing below INFO.

    There they write headers, bodies and tokens, such as the cookies of each websocket.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.INFO or record.name.partition(".")[0] in ROOMS


def without_queries(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Cut the query strings of all addresses and paths in an entry, a traceback's too: they hold tickets and tokens.

    A processor for structlog. Addresses come from many libraries, so this is the place that all of them pass.
    """
    for key, value in event.items():
        if isinstance(value, str) and "?" in value:
            event[key] = re.sub(r"\S+", _without_query, value)
    return event


def _without_query(word: re.Match[str]) -> str:
    """Return the word, cut after its first question mark if a slash stands before that. Linear in its length."""
    address, mark, query = word[0].partition("?")
    if not mark or "/" not in address:
        return word[0]
    bare = query.rstrip(_AFTER_AN_ADDRESS)
    return f"{address}?{'…' if bare else ''}{query[len(bare) :]}"


def formatter(*, as_json: bool) -> logging.Formatter:
    """A formatter for settings.LOGGING."""
    renderer: Any = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            without_queries,
            renderer,
        ],
    )
