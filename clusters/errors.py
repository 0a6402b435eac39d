"""What can go wrong when speaking to a cluster. Two answers for callers: try again later, or do not.

Neither carries a request's body, headers or credentials: their text may be logged and shown.
"""

from __future__ import annotations


class ClusterError(Exception):
    """Either of the two below."""

    retry_after_seconds: float | None = None

    def __init__(self, message: str) -> None:
        self.message = message.replace("\0", "\ufffd")  # it may be written down, and no database keeps a NUL
        super().__init__(self.message)


class ClusterUnavailable(ClusterError):
    """The cluster did not answer, or asked to come back later. What was accepted stays accepted."""

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ClusterMisconfigured(ClusterUnavailable):
    """No connection can be made with these settings: an admin must act, and then it works by itself."""


class StreamSilent(ClusterUnavailable):
    """A stream brought nothing for its read timeout: the network may be dead."""


class ClusterRefused(ClusterError):
    """The cluster understood and said no. `status` is HTTP's, `reason` is Kubernetes' own word for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
