"""Startup, readiness and liveness probes, and what each result changes."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

from devcluster.network import Connect
from devcluster.resources import Obj


@dataclass
class Gate:
    """What the probes of one container found so far."""

    started: bool
    ready: bool


class Prober:
    """Runs one container's probes for as long as it lives.

    `changed` is called when it becomes (un)started or (un)ready, `unhealthy` with each failure's words.
    """

    def __init__(
        self,
        container: Obj,
        address: str,
        connect: Connect,
        changed: Callable[[], None],
        unhealthy: Callable[[str], None],
    ):
        self._container, self._address, self._connect = container, address, connect
        self._changed, self._unhealthy = changed, unhealthy
        probes = {k: container.get(f"{k}Probe") for k in ("startup", "readiness", "liveness")}
        self._probes = {k: v for k, v in probes.items() if v}
        self.gate = Gate(
            started="startup" not in self._probes, ready=not self._probes.keys() & {"startup", "readiness"}
        )

    async def run(self) -> str | None:
        """Returns the name of the probe that calls for a restart; otherwise runs for ever."""
        if probe := self._probes.get("startup"):
            if not await self._until(probe, "Startup"):
                return "startup"
            self.gate.started = True
            self.gate.ready = "readiness" not in self._probes
            self._changed()
        readiness = self._probes.get("readiness")
        watching = asyncio.ensure_future(self._readiness(readiness)) if readiness else None
        try:
            if liveness := self._probes.get("liveness"):
                await self._liveness(liveness)
                return "liveness"
            await asyncio.Event().wait()
        finally:
            if watching:
                watching.cancel()
        return None

    async def _until(self, probe: Obj, word: str) -> bool:
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        failures = 0
        while failures < probe["failureThreshold"]:
            why = await self._probe(probe)
            if why is None:
                return True
            failures += 1
            self._unhealthy(f"{word} probe failed: {why}")
            await asyncio.sleep(probe["periodSeconds"])
        return False

    async def _readiness(self, probe: Obj) -> None:
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        good = bad = 0
        while True:
            why = await self._probe(probe)
            good, bad = (good + 1, 0) if why is None else (0, bad + 1)
            if why is not None:
                self._unhealthy(f"Readiness probe failed: {why}")
            ready = self.gate.ready
            if good >= probe["successThreshold"]:
                ready = True
            elif bad >= probe["failureThreshold"]:
                ready = False
            if ready != self.gate.ready:
                self.gate.ready = ready
                self._changed()
            await asyncio.sleep(probe["periodSeconds"])

    async def _liveness(self, probe: Obj) -> None:
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        failures = 0
        while failures < probe["failureThreshold"]:
            why = await self._probe(probe)
            failures = 0 if why is None else failures + 1
            if why is not None:
                self._unhealthy(f"Liveness probe failed: {why}")
            await asyncio.sleep(probe["periodSeconds"])

    async def _probe(self, probe: Obj) -> str | None:
        """None where it succeeds, else why not."""
        try:
            async with asyncio.timeout(probe["timeoutSeconds"]):
                if http := probe.get("httpGet"):
                    return await _http(
                        self._connect, http.get("host") or self._address, self._port(http["port"]), http
                    )
                if tcp := probe.get("tcpSocket"):
                    return await _tcp(
                        self._connect, tcp.get("host") or self._address, self._port(tcp["port"])
                    )
        except TimeoutError:
            return "context deadline exceeded"
        return "exec and grpc probes are not supported here"

    def _port(self, port: int | str) -> int:
        if isinstance(port, int) or port.isdigit():
            return int(port)
        for entry in self._container.get("ports", []):
            if entry.get("name") == port:
                return int(entry["containerPort"])
        return 0


async def _tcp(connect: Connect, host: str, port: int) -> str | None:
    try:
        _, writer = await connect(host, port)
    except OSError as error:
        return f"dial tcp {host}:{port}: connect: {os.strerror(error.errno or 0).lower()}"
    writer.close()
    return None


async def _http(connect: Connect, host: str, port: int, http: Obj) -> str | None:
    url = f"http://{host}:{port}{http['path']}"
    try:
        reader, writer = await connect(host, port)
    except OSError:
        return f'Get "{url}": dial tcp {host}:{port}: connect: connection refused'
    try:
        headers = {
            "Host": f"{host}:{port}",
            "User-Agent": "kube-probe/1.36",
            "Accept": "*/*",
            "Connection": "close",
        }
        headers |= {h["name"]: h["value"] for h in http.get("httpHeaders") or []}
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        writer.write(f"GET {http['path']} HTTP/1.1\r\n{lines}\r\n".encode())
        status_line = await reader.readline()
        code = int(status_line.split()[1])
    except (OSError, IndexError, ValueError):
        return f'Get "{url}": EOF'
    finally:
        writer.close()
    return None if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}"
