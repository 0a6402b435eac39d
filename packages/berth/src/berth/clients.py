"""Sending of calls: `Client` waits for answers, `AsyncClient` awaits them. What both decide is in functions of its own.

Proxies are those of the environment (HTTP_PROXY, HTTPS_PROXY, NO_PROXY). Certificates are checked with the authorities
that SSL_CERT_FILE or SSL_CERT_DIR names, else with those of this machine and certifi's.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import cache
from typing import Any, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

import certifi
import httpx

from berth.api.call import Call, Page
from berth.errors import NoAnswer, OtherVersion, Refused, Unreachable, refusal
from berth.version import VERSION, is_made_for

Answer = TypeVar("Answer")
Row = TypeVar("Row")
BASE = "/api/v1/"
TIMEOUT = httpx.Timeout(60, connect=10)
PATIENCE_SECONDS = 60.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0
SILENT_SECONDS = 3.0
"""Time after which a warning says that an answer is still waited for."""
COME_BACK = (429, 502, 503, 504)
FINAL = (
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
    httpx.ProxyError,
    ssl.SSLCertVerificationError,
)


def settings(url: str, token: str) -> dict[str, Any]:
    """Return the arguments of httpx's clients. Raise ValueError if the address or the token cannot be one."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not has_valid_host(url):
        raise ValueError(f"Not a Berth address: “{url}”. An address is like https://berth.example.")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ValueError("This is not a token of Berth.")  # without the token: errors end in logs
    headers = {"Accept": "application/json", "User-Agent": f"berth/{VERSION}"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    base = f"{parts.scheme}://{parts.netloc}{BASE}"
    return {"base_url": base, "headers": headers, "timeout": TIMEOUT, "verify": authorities()}


def has_valid_host(url: str) -> bool:
    try:
        httpx.URL(url)
    except httpx.InvalidURL:
        return False
    return True


@cache
def authorities() -> ssl.SSLContext:
    context = ssl.create_default_context()  # knows SSL_CERT_FILE and SSL_CERT_DIR
    if not os.environ.get("SSL_CERT_FILE") and not os.environ.get("SSL_CERT_DIR"):
        context.load_verify_locations(certifi.where())
    return context


def arguments(call: Call[Any], key: str | None) -> dict[str, Any]:
    """Return the arguments of httpx's `build_request`."""
    found: dict[str, Any] = {"method": call.method, "url": call.path}
    if query := {name: value for name, value in call.query.items() if value is not None}:
        found["params"] = query
    headers = {} if key is None else {"Idempotency-Key": key}
    if call.content is not None:
        found["content"] = call.content
        headers["Content-Type"] = call.content_type
    elif call.body is not None:
        found["json"] = call.body
    return {**found, "headers": headers}


class Tries:
    """Tries of one call: whether, and when, it is sent again after one that brought nothing."""

    def __init__(self, call: Call[Any], request: httpx.Request, key: str | None, patience: float) -> None:
        self.url, self.is_repeatable = request.url, call.is_repeatable or key is not None
        self.began, self.patience = time.monotonic(), patience
        self.count, self.has_warned = 0, False

    def pause_after(self, problem: httpx.Response | httpx.TransportError) -> float:
        """Return the seconds until the next try. Raise Refused or Unreachable if there is none."""
        pause: float = min(FIRST_PAUSE * 2**self.count, LONGEST_PAUSE)
        if isinstance(problem, httpx.Response):
            wanted = problem.headers.get("Retry-After", "")
            if problem.status_code == httpx.codes.TOO_MANY_REQUESTS and not wanted.isdecimal():
                raise refusal(problem)  # too many of something that waiting does not change
            pause = max(pause, float(wanted)) if wanted.isdecimal() else pause
        waited = time.monotonic() - self.began + pause
        if not self.is_repeatable or waited > self.patience or is_final(problem):
            raise gave_up(self.url, problem)
        if waited > SILENT_SECONDS and not self.has_warned:
            end = datetime.now() + timedelta(seconds=self.patience - waited)
            warnings.warn(
                f"{gave_up(self.url, problem)} Trying again until {end:%H:%M:%S}.", NoAnswer, stacklevel=3
            )
            self.has_warned = True
        self.count += 1
        return pause


def is_final(problem: BaseException | httpx.Response | None) -> bool:
    """Return True if the next try would end as this one: waiting changes no setting and no certificate."""
    while isinstance(problem, BaseException):
        if isinstance(problem, FINAL):
            return True
        problem = problem.__cause__ or problem.__context__
    return False


def answer_of(call: Call[Answer], response: httpx.Response) -> Answer:
    """Return the answer's content. Raise Refused."""
    check_version(response.headers.get("Berth-Version"))
    if not response.is_success:
        raise refusal(response)
    if not response.content and call.method != "GET":
        return cast(Answer, None)
    if is_json(response):
        try:
            return cast(Answer, response.json())
        except ValueError:
            raise refusal(response) from None
    if is_foreign(response):
        raise refusal(response)
    return cast(Answer, response.text if response.charset_encoding else response.content)


def is_json(response: httpx.Response) -> bool:
    return bool(response.headers.get("Content-Type", "").startswith("application/json"))


def is_foreign(response: httpx.Response) -> bool:
    """Return True for a sign-in page of a network, or another site."""
    return "Berth-Version" not in response.headers


def check_version(server: str | None) -> None:
    if server and not is_made_for(server):
        warnings.warn(
            f"This is berth {VERSION}, but the server is Berth {server}.", OtherVersion, stacklevel=2
        )


def following(call: Call[Page[Row]], page: Page[Row]) -> Call[Page[Row]] | None:
    """Return the call for the next page. Its address is not followed: behind a proxy it may be another host's."""
    if page["next"] is None:
        return None
    found = parse_qs(urlsplit(page["next"]).query, keep_blank_values=True)
    return call.asking(**{name: values if len(values) > 1 else values[0] for name, values in found.items()})


def gave_up(url: httpx.URL, problem: httpx.Response | httpx.TransportError) -> Refused | Unreachable:
    """Return the error of a request that is not sent again."""
    if isinstance(problem, httpx.Response):
        error = refusal(problem)
        return Unreachable(f"{error.message} {error.hint}") if problem.status_code >= 500 else error
    is_ours = isinstance(problem, httpx.LocalProtocolError)  # its text can have the token
    words = type(problem).__name__ if is_ours else str(problem) or type(problem).__name__
    return Unreachable(f"{url.scheme}://{url.netloc.decode()} does not answer: {words}.")


class Client:
    """Client for scripts. `patience`: seconds for which requests that may be repeated are sent again."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        patience: float = PATIENCE_SECONDS,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.http = httpx.Client(**settings(url, token), transport=transport)
        self.patience = patience

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def send(self, call: Call[Answer], *, key: str | None = None) -> Answer:
        """Send a call and return its answer. `key`: an Idempotency-Key, by which a POST can be sent again.

        Raise Refused, or Unreachable.
        """
        return answer_of(call, self._sent(call, key, stream=False))

    @contextmanager
    def stream(self, call: Call[Any], *, key: str | None = None) -> Iterator[httpx.Response]:
        """Send a call, and open its answer before its content is there: `iter_bytes()` reads a large one in pieces.

        Raise Refused, or Unreachable: also while it is read. What came until then is no whole file.
        """
        response = self._sent(call, key, stream=True)
        try:
            if not response.is_success or is_foreign(response):
                response.read()
                answer_of(call, response)
            check_version(response.headers.get("Berth-Version"))
            yield response
        except httpx.TransportError as error:
            raise gave_up(response.url, error) from None
        finally:
            response.close()

    def _sent(self, call: Call[Any], key: str | None, *, stream: bool) -> httpx.Response:
        request = self.http.build_request(**arguments(call, key))
        tries = Tries(call, request, key, self.patience)
        while True:
            try:
                response = self.http.send(request, stream=stream)
                if response.status_code not in COME_BACK:
                    return response
                response.read()
            except httpx.TransportError as error:
                pause = tries.pause_after(error)
            else:
                pause = tries.pause_after(response)
            time.sleep(pause)

    def rows(self, call: Call[Page[Row]]) -> Iterator[Row]:
        """Yield the rows of all pages of a list."""
        wanted: Call[Page[Row]] | None = call
        while wanted is not None:
            page = self.send(wanted)
            yield from page["results"]
            wanted = following(wanted, page)


class AsyncClient:
    """Client for asyncio, with the methods of `Client`."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        patience: float = PATIENCE_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.http = httpx.AsyncClient(**settings(url, token), transport=transport)
        self.patience = patience

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.http.aclose()

    async def send(self, call: Call[Answer], *, key: str | None = None) -> Answer:
        return answer_of(call, await self._sent(call, key, stream=False))

    @asynccontextmanager
    async def stream(self, call: Call[Any], *, key: str | None = None) -> AsyncIterator[httpx.Response]:
        response = await self._sent(call, key, stream=True)
        try:
            if not response.is_success or is_foreign(response):
                await response.aread()
                answer_of(call, response)
            check_version(response.headers.get("Berth-Version"))
            yield response
        except httpx.TransportError as error:
            raise gave_up(response.url, error) from None
        finally:
            await response.aclose()

    async def _sent(self, call: Call[Any], key: str | None, *, stream: bool) -> httpx.Response:
        request = self.http.build_request(**arguments(call, key))
        tries = Tries(call, request, key, self.patience)
        while True:
            try:
                response = await self.http.send(request, stream=stream)
                if response.status_code not in COME_BACK:
                    return response
                await response.aread()
            except httpx.TransportError as error:
                pause = tries.pause_after(error)
            else:
                pause = tries.pause_after(response)
            await asyncio.sleep(pause)

    async def rows(self, call: Call[Page[Row]]) -> AsyncIterator[Row]:
        wanted: Call[Page[Row]] | None = call
        while wanted is not None:
            page = await self.send(wanted)
            for row in page["results"]:
                yield row
            wanted = following(wanted, page)
