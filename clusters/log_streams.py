"""Logs of many containers at once, on one event loop: no thread waits for a line.

A stream costs a socket and its buffers. It is read no faster than its reader takes lines: what waits, waits in the
cluster.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import aiohttp

from clusters.api import Api
from clusters.errors import ClusterUnavailable, StreamSilent
from clusters.kinds import KINDS
from clusters.transport import CONNECT_TIMEOUT_SECONDS, READ_TIMEOUT_SECONDS, answer_as_error, retry_after

BUFFER_BYTES = 2**16
FOLLOW_TIMEOUT_SECONDS = 300.0


class LogStreams:
    """Log streams of one cluster. Made and used in one event loop; `close` ends all of them."""

    def __init__(self, api: Api) -> None:
        """Take address, credentials and certificates from a connection that is there. Makes no request."""
        self.api = api
        configuration = api.transport.configuration
        self._proxy: str | None = configuration.proxy
        self._server_name: str | None = configuration.tls_server_name
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=_tls(configuration)),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=BUFFER_BYTES,
        )

    async def close(self) -> None:
        await self._session.close()

    async def lines(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        since_seconds: int = 0,
        follow: bool = False,
        previous: bool = False,
        longest_line_bytes: int,
    ) -> AsyncGenerator[bytes, None]:
        """Yield lines with their times in front, longer ones in pieces. Raises ClusterError.

        `since_seconds`: only lines from this second since 1970 on. `previous`: of the container's run before this one.
        """
        query: dict[str, str | int] = {"container": container, "timestamps": "true"}
        if since_seconds:
            query["sinceTime"] = datetime.fromtimestamp(since_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        query |= {name: "true" for name, is_on in (("follow", follow), ("previous", previous)) if is_on}
        # A followed log may end in the middle of a line, when its connection does.
        url, headers = self.api.transport.prepared(KINDS["Pod"].path(namespace, pod, "log"), query)
        silent_after = FOLLOW_TIMEOUT_SECONDS if follow else READ_TIMEOUT_SECONDS
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_TIMEOUT_SECONDS, sock_read=silent_after
        )
        try:
            async with self._session.get(
                url, headers=headers, timeout=timeout, proxy=self._proxy, server_hostname=self._server_name
            ) as answer:
                if answer.status >= 300:
                    content = await answer.content.read(BUFFER_BYTES)
                    raise answer_as_error(answer.status, content, retry_after(answer.headers))
                async for line in _lines(answer.content, longest_line_bytes, whole=follow):
                    yield line
        except aiohttp.SocketTimeoutError:
            raise StreamSilent("The cluster's stream went silent.") from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ClusterUnavailable(f"The cluster's stream broke: {type(error).__name__}") from None


async def _lines(content: aiohttp.StreamReader, longest: int, *, whole: bool) -> AsyncGenerator[bytes, None]:
    """Yield lines. `whole`: leave out a last one without line feed, since more of it may come."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            for begin in range(0, max(len(line), 1), longest):
                yield line[begin : begin + longest]
        while len(rest) > longest:
            yield rest[:longest]
            rest = rest[longest:]
    if rest and not whole:
        yield rest


def _tls(configuration: Any) -> ssl.SSLContext | bool:
    """Return the TLS settings of a connection, as the client library has them; True for plain HTTP."""
    if not configuration.host.startswith("https"):
        return True
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    if not configuration.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if configuration.assert_hostname is False:
        context.check_hostname = False
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    return context
