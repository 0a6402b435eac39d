"""Query of a Prometheus: the series of one metric within the last minutes.

Only an admin can set the address, so an internal address is allowed. Even so, Berth follows no redirect, reads no more
than the largest answer that Berth can need, and shows nothing of the answer but numbers and the labels it asked for. A
range query is used because an instant vector would hide the times of samples.

The standard library's client is used because the deadline holds for headers too: `_hang_up` needs the socket before the
answer has begun. urllib3 gives access to it only after the headers, and its timeouts start anew with every piece.
"""

from __future__ import annotations

import http.client
import json
import math
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from django.utils.translation import gettext as _

TIMEOUT_SECONDS = 5.0
MOST_BYTES = 32 << 20
LONGEST_LABEL = 1024
LONGEST_TOKEN = 8192
LATEST = 1 << 34  # in seconds since 1970
_PIECE = 1 << 16


class NoAnswer(Exception):
    """Reason without an answer, as a sentence without secrets."""


class Series(NamedTuple):
    labels: dict[str, str]
    samples: list[tuple[float, float]]  # (seconds since 1970, value), the oldest first


class Prometheus:
    """Connection for a few queries, with one deadline for all."""

    def __init__(self, url: str, token_path: str, *, within_seconds: float) -> None:
        parts = urlsplit(url)
        self._path = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json"} | _authorization(token_path)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
        self._socket: socket.socket | None = None
        self._is_over = threading.Event()
        self._end = threading.Timer(within_seconds, self._hang_up)
        self._end.daemon = True
        self._end.start()

    def close(self) -> None:
        self._end.cancel()
        self._connection.close()

    def series(self, metric: str, *, minutes: int, step: str = "") -> list[Series]:
        """Return the series of the last minutes. Raise NoAnswer. An expression needs a step, as in "1m"."""
        query = quote(f"({metric})[{minutes}m:{step}]" if step else f"{metric}[{minutes}m]")
        try:
            self._connect()
            self._connection.request("GET", f"{self._path}/api/v1/query?query={query}", headers=self._headers)
            with self._connection.getresponse() as response:
                if response.status != 200:
                    raise NoAnswer(_refusal(response.status))
                return list(_series(self._read(response)))
        except (OSError, http.client.HTTPException) as error:
            raise NoAnswer(_in_words(TimeoutError() if self._is_over.is_set() else error)) from None

    def _connect(self) -> None:
        """Connect, and keep the socket: http.client drops it from the connection for an answer that ends by closing."""
        if self._connection.sock is None:
            self._connection.connect()
            self._socket = self._connection.sock
        if self._is_over.is_set():
            raise TimeoutError

    def _hang_up(self) -> None:
        """End the connection at the deadline, however slowly the other side sends."""
        self._is_over.set()
        with suppress(OSError):
            if self._socket:
                self._socket.shutdown(socket.SHUT_RDWR)

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        content = bytearray()
        while piece := response.read1(_PIECE):
            content += piece
            if len(content) > MOST_BYTES:
                raise NoAnswer(_("Prometheus' answer is too long."))
        if self._is_over.is_set():
            raise TimeoutError
        return bytes(content)


# Whoever could write the cluster's row would be sent the account or the environment of the part that asks.
OWN_FOLDERS = (Path("/var/run/secrets/kubernetes.io"), Path("/run/secrets/kubernetes.io"), Path("/proc"))


def _authorization(token_path: str) -> dict[str, str]:
    if not token_path:
        return {}
    real = Path(token_path).resolve()
    if any(real.is_relative_to(folder) for folder in OWN_FOLDERS):
        raise NoAnswer(_("The file of Prometheus' token must not be one of Berth's own credentials."))
    try:
        with Path(token_path).open(errors="replace") as file:
            token = file.read(LONGEST_TOKEN + 1).strip()
    except OSError as error:
        reason = {"reason": error.strerror}
        raise NoAnswer(_("The file of Prometheus' token cannot be read: %(reason)s.") % reason) from None
    # http.client would quote a malformed token in its error.
    if not (token and token.isascii() and token.isprintable() and len(token) <= LONGEST_TOKEN):
        raise NoAnswer(_("The file of Prometheus' token does not hold one line of plain text."))
    return {"Authorization": f"Bearer {token}"}


def _refusal(status: int) -> str:
    text = _("Prometheus answered %(status)d.")
    if 300 <= status < 400:
        text = _("Prometheus answered with a redirect (%(status)d). Berth does not follow redirects.")
    elif status in (401, 403):
        text = _("Prometheus does not accept Berth's token (%(status)d).")
    return text % {"status": status}


def _in_words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return _("Prometheus did not answer in time.")
    if isinstance(error, ssl.SSLCertVerificationError):
        return _("Prometheus' certificate is not trusted: %(reason)s.") % {"reason": error.verify_message}
    reason = getattr(error, "strerror", None) or type(error).__name__
    return _("Prometheus cannot be asked: %(reason)s.") % {"reason": reason}


def _series(content: bytes) -> Iterator[Series]:
    """Yield the series. A malformed series is skipped and hides no other. Raise NoAnswer for a malformed answer."""
    try:
        data = json.loads(content)["data"]
        results = data["result"] if data["resultType"] == "matrix" else None
    except (ValueError, LookupError, TypeError, RecursionError):
        results = None
    if not isinstance(results, list):
        raise NoAnswer(_("The server at this address is not Prometheus."))
    for result in results:
        try:
            labels = {str(name): _label(value) for name, value in result["metric"].items()}
            samples = [(float(at), float(value)) for at, value in result["values"]]
        except (ValueError, LookupError, TypeError, AttributeError):
            continue
        finite = [(at, value) for at, value in samples if 0 <= at < LATEST and math.isfinite(value)]
        yield Series(labels, sorted(finite))


def _label(value: Any) -> str:
    """Return the label. Raise ValueError if PostgreSQL cannot store it: a scraped process may write anything there."""
    text = str(value)
    if len(text) > LONGEST_LABEL or "\0" in text:
        raise ValueError
    text.encode()
    return text
