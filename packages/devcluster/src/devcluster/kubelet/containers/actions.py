"""Actions of probes and hooks: a command in the container, an HTTP request, a connection, or a pause."""

import asyncio
import os
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from devcluster.kubelet.processes.sessions import CannotExecute, Wish, run
from devcluster.kubelet.runtime import Container
from devcluster.resources import Obj

MOST_OUTPUT_BYTES = 10 * 1024
Connect = Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Failed(Exception):
    """Failure of an action; the text is the kubelet's."""


class Errored(Exception):
    """Action that could not be tried at all; the text is the kubelet's."""


@dataclass(frozen=True)
class Place:
    """Target of an action: a running container, its spec, its pod's address and the way to reach that."""

    container: Container
    spec: Obj
    address: str
    connect: Connect


async def act(place: Place, action: Obj, timeout_seconds: float | None) -> None:
    """Run an action; raise Failed or Errored if it does not succeed."""
    if command := action.get("exec"):
        await _exec(place, command.get("command") or [], timeout_seconds)
    elif http := action.get("httpGet"):
        await _http(place, http, timeout_seconds)
    elif tcp := action.get("tcpSocket"):
        await _tcp(place, tcp, timeout_seconds)
    elif sleep := action.get("sleep"):
        await asyncio.sleep(sleep["seconds"])
    else:
        raise Errored("devcluster does not probe over gRPC")


async def _exec(place: Place, command: list[str], timeout_seconds: float | None) -> None:
    try:
        session = await place.container.execute(Wish(command))
        async with asyncio.timeout(timeout_seconds):
            code, output = await run(session, MOST_OUTPUT_BYTES)
    except TimeoutError as error:
        words = " ".join(command)
        raise Failed(f'command timed out: "{words}" timed out after {timeout_seconds:g}s') from error
    except CannotExecute as error:
        raise Errored(f"rpc error: code = Unknown desc = failed to exec in container: {error}") from error
    if code:
        raise Failed(output.decode(errors="replace"))


async def _tcp(place: Place, tcp: Obj, timeout_seconds: float | None) -> None:
    host, port = tcp.get("host") or place.address, _port(place.spec, tcp["port"])
    try:
        async with asyncio.timeout(timeout_seconds):
            _, writer = await place.connect(host, port)
    except TimeoutError as error:
        raise Failed(f"dial tcp {host}:{port}: i/o timeout") from error
    except OSError as error:
        raise Failed(_refused(host, port, error)) from error
    writer.close()


async def _http(place: Place, http: Obj, timeout_seconds: float | None) -> None:
    host, port = http.get("host") or place.address, _port(place.spec, http["port"])
    scheme = http.get("scheme", "HTTP").lower()
    url = f"{scheme}://{host}:{port}{http.get('path') or '/'}"
    try:
        async with asyncio.timeout(timeout_seconds):
            code = await _status_code(place, host, port, http)
    except TimeoutError as error:
        late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        raise Failed(f'Get "{url}": {late}') from error
    except ConnectionRefusedError as error:
        raise Failed(f'Get "{url}": {_refused(host, port, error)}') from error
    except (OSError, IndexError, ValueError) as error:
        raise Failed(f'Get "{url}": EOF') from error
    if not 200 <= code < 400:
        raise Failed(f"HTTP probe failed with statuscode: {code}")


async def _status_code(place: Place, host: str, port: int, http: Obj) -> int:
    reader, writer = await place.connect(host, port)
    try:
        if http.get("scheme") == "HTTPS":
            await writer.start_tls(_trusting())
        headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/1.36"}
        headers |= {"Accept": "*/*", "Connection": "close"}
        headers |= {h["name"]: h["value"] for h in http.get("httpHeaders") or []}
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        writer.write(f"GET {http.get('path') or '/'} HTTP/1.1\r\n{lines}\r\n".encode())
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()


def _trusting() -> ssl.SSLContext:
    """Return a context that accepts any certificate, as a kubelet does for pods."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _refused(host: str, port: int, error: OSError) -> str:
    return f"dial tcp {host}:{port}: connect: {os.strerror(error.errno or 0).lower()}"


def _port(spec: Obj, port: int | str) -> int:
    if isinstance(port, int) or port.isdigit():
        return int(port)
    for entry in spec.get("ports") or []:
        if entry.get("name") == port:
            return int(entry["containerPort"])
    raise Errored(f"couldn't find port: {port} in container")
