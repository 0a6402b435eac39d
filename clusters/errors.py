"""Errors of requests to a cluster: ClusterUnavailable means try again later, ClusterRefused means do not.

Neither carries a request's body, headers or credentials: their text may be logged and shown.
"""

from __future__ import annotations


class ClusterError(Exception):
    """Base of ClusterUnavailable and ClusterRefused."""

    retry_after_seconds: float | None = None

    def __init__(self, message: str) -> None:
        self.message = message.replace("\0", "\ufffd")  # it may be stored, and PostgreSQL stores no NUL
        super().__init__(self.message)


class ClusterUnavailable(ClusterError):
    """The cluster did not answer, or asked to come back later. What was accepted stays accepted."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ClusterMisconfigured(ClusterUnavailable):
    """Settings allow no connection. Once an admin corrects them, it works by itself."""


class StreamSilent(ClusterUnavailable):
    """A stream brought nothing for its read timeout: the network may be dead."""


class ClusterRefused(ClusterError):
    """The cluster understood and refused. `status` is HTTP's, `reason` is Kubernetes' own word for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
