"""Requests to one Kubernetes API as raw JSON, timeouts on every call, clusters.errors on every failure.

No typed models: decoding them costs three times the JSON, and Berth reads little of an object.
A request is repeated only where that is harmless and quick; callers plan longer waits.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import urllib3
from kubernetes.client import ApiClient, ApiException, Configuration

from clusters.errors import ClusterError, ClusterRefused, ClusterUnavailable, StreamSilent

CONNECT_TIMEOUT_SECONDS = 3.0
READ_TIMEOUT_SECONDS = 30.0
ATTEMPTS = 3
PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 1.0
# Far above any object of a watch. Needed because a program's output may never contain a line feed.
LONGEST_LINE_BYTES = 8 * 2**20

Json = dict[str, Any]
Objects = list[Json]
Query = Mapping[str, str | int]


class Transport:
    """Thread-safe: urllib3 keeps one connection per request under way."""

    def __init__(self, client: ApiClient, *, within_seconds: float | None = None) -> None:
        """Limit all requests together to `within_seconds`, after which each counts as not answered."""
        self._client = client
        self.address: str = client.configuration.host
        self._deadline = None if within_seconds is None else time.monotonic() + within_seconds

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Json | Objects | None = None,
        content_type: str = "application/json",
        accept: str | None = None,
        repeatable: bool = True,
        quotes_secrets: bool = False,
        read_timeout_seconds: float = READ_TIMEOUT_SECONDS,
    ) -> Json:
        """Return the answer's JSON. `quotes_secrets`: a refusal may repeat what was sent; withhold its text."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                response = self._send(
                    method, path, query, body, content_type, read_timeout_seconds, accept=accept
                )
                content = response.data
            except (urllib3.exceptions.ProtocolError, urllib3.exceptions.SSLError) as error:
                if not repeatable or attempt == ATTEMPTS:
                    raise self._unavailable(error) from None
                time.sleep(PAUSE_SECONDS)
                continue
            except (urllib3.exceptions.HTTPError, ApiException) as error:
                raise self._unavailable(error) from None
            if response.status < 300:
                return self._decoded(content)
            pause = retry_after(response.headers)
            failure = answer_as_error(response.status, content, pause, quotes_secrets=quotes_secrets)
            undone = response.status == 429 or (response.status >= 500 and repeatable)
            passing = undone and isinstance(failure, ClusterUnavailable) and pause <= LONGEST_PAUSE_SECONDS
            if not passing or attempt == ATTEMPTS:
                raise failure
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def stream(
        self,
        path: str,
        *,
        query: Query,
        read_timeout_seconds: float,
        longest_line_bytes: int = LONGEST_LINE_BYTES,
    ) -> Lines:
        """Return lines as they come, longer ones in pieces; silence beyond the timeout raises StreamSilent."""
        try:
            response = self._send("GET", path, query, None, "application/json", read_timeout_seconds)
            if response.status < 300:
                return Lines(response, longest_line_bytes)
            content = response.data
        except (urllib3.exceptions.HTTPError, ApiException) as error:
            raise self._unavailable(error) from None
        raise answer_as_error(response.status, content, retry_after(response.headers))

    def _send(
        self,
        method: str,
        path: str,
        query: Query | None,
        body: Json | Objects | None,
        content_type: str,
        read_timeout_seconds: float,
        *,
        accept: str | None = None,
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": accept or "application/json"}
        if body is not None:
            headers["Content-Type"] = content_type
        parameters = self._serialized(method, path, query, headers, body)
        timeouts = (CONNECT_TIMEOUT_SECONDS, read_timeout_seconds)
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise ClusterUnavailable(f"Cannot reach {self.address}: no answer in time")
            timeouts = (min(timeouts[0], left), min(timeouts[1], left))
        answer = self._client.call_api(*parameters, _request_timeout=timeouts)
        response: urllib3.BaseHTTPResponse = answer.response
        return response

    def _serialized(
        self,
        method: str,
        path: str,
        query: Query | None,
        headers: dict[str, str],
        body: Json | Objects | None,
    ) -> tuple[Any, Any, Any, Any, Any]:
        parameters: tuple[Any, Any, Any, Any, Any] = self._client.param_serialize(
            method,
            path,
            query_params=[(name, str(value)) for name, value in (query or {}).items()],
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        return parameters

    def prepared(self, path: str, query: Query) -> tuple[str, dict[str, str]]:
        """Return address and headers, with the credentials of now, for a client of another kind (log_streams.py)."""
        _method, url, headers, _body, _fields = self._serialized("GET", path, query, {}, None)
        return url, headers

    @property
    def configuration(self) -> Configuration:
        found: Configuration = self._client.configuration
        return found

    def _decoded(self, content: bytes) -> Json:
        try:
            decoded = json.loads(content)
        except ValueError:
            raise ClusterUnavailable(f"{self.address} answered with something that is not JSON.") from None
        return decoded if isinstance(decoded, dict) else {}

    def _unavailable(self, error: Exception) -> ClusterUnavailable:
        return ClusterUnavailable(f"Cannot reach {self.address}: {_in_short(error)}")


class Lines(Iterator[str]):
    """Lines of a streamed answer. `close` may be called from another thread, and ends the reader."""

    def __init__(self, response: urllib3.BaseHTTPResponse, longest_line_bytes: int) -> None:
        self._response, self._longest_line_bytes = response, longest_line_bytes
        self._closed = False
        self._lines = self._read()

    def __next__(self) -> str:
        return next(self._lines)

    def close(self) -> None:
        self._closed = True
        with suppress(ValueError, RuntimeError, OSError):  # it had ended by itself
            self._response.shutdown()

    def _read(self) -> Iterator[str]:
        rest = b""
        try:
            for chunk in self._response.stream(amt=None, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line.decode(errors="replace")
                while len(rest) > self._longest_line_bytes:
                    yield rest[: self._longest_line_bytes].decode(errors="replace")
                    rest = rest[self._longest_line_bytes :]
            if rest:
                yield rest.decode(errors="replace")
        except urllib3.exceptions.ReadTimeoutError:
            raise StreamSilent("The cluster's stream went silent.") from None
        except (urllib3.exceptions.HTTPError, OSError, AttributeError) as error:
            # AttributeError: urllib3 drops the socket while another thread reads it.
            if not self._closed:
                raise ClusterUnavailable(f"The cluster's stream broke: {_in_short(error)}") from None
        finally:
            self._response.close()


def answer_as_error(
    status: int, content: bytes, retry_after_seconds: float, *, quotes_secrets: bool = False
) -> ClusterError:
    """Return the error that an answer of status 300 or more means for the caller."""
    reason, message = _status_text(content)
    if status == 401:
        return ClusterUnavailable("The cluster does not accept Berth's credentials (401).")
    if status == 429:
        return ClusterUnavailable(
            "The cluster asks to come back later.", retry_after_seconds=retry_after_seconds
        )
    if status >= 500 and "failed to create typed patch object" not in message:
        return ClusterUnavailable(f"The cluster could not do it now ({status}): {message or reason}")
    if quotes_secrets and status in (400, 422, 500):
        message = (
            f"the object was refused as {reason or status}; the text is withheld since it may quote a secret"
        )
    return ClusterRefused(status, reason, message or f"refused with HTTP status {status}")


def _status_text(content: bytes) -> tuple[str, str]:
    """Return reason and message of a Kubernetes Status; a proxy in between may answer anything."""
    try:
        status = json.loads(content)
        return str(status.get("reason") or ""), str(status.get("message") or "")
    except (ValueError, AttributeError):
        return "", content[:200].decode(errors="replace").strip()


def retry_after(headers: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return PAUSE_SECONDS


def _in_short(error: Exception) -> str:
    """Return the cause without the library's own names in front of it."""
    if isinstance(error, ApiException):
        return str(error.reason)
    if isinstance(error, urllib3.exceptions.NewConnectionError):  # urllib3 counts it among the timeouts
        return str(error).rpartition(": ")[2]
    if isinstance(error, urllib3.exceptions.ConnectTimeoutError):
        return f"no connection within {CONNECT_TIMEOUT_SECONDS:g} seconds"
    if isinstance(error, urllib3.exceptions.ReadTimeoutError):
        return "no answer in time"
    return str(error).rpartition("): ")[2] or type(error).__name__
