"""Network for the pods alone: a namespace for each, joined by the hub, with slirp4netns as the only way out.

An ordinary user may do all of it, and nothing changes on this machine: without root it runs in a user namespace. Only
sockets that the hub made reach a pod from outside: probes and Services use those. Pods reach each other, and through
slirp4netns all that this machine reaches except its loopback. The network ends with devcluster.

NetworkPolicies are enforced in each pod's namespace by nftables, if nft is there. A pod has no capability in its
namespace and cannot change the rules.
"""

import asyncio
import contextlib
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from devcluster.controllers.proxy import Proxy
from devcluster.kubelet.network.outside import seen, through
from devcluster.network import Addresses, PodNetwork, Rules, SharedNetwork, Streams

NETWORK, PREFIX_BITS, MTU = "10.244.0.0/16", 16, 65520
GATEWAY, ROUTER, NAMESERVER = "10.244.0.1", "10.244.0.2", "10.244.0.3"
"""The hub itself; the way out; its name server."""
PODS = ("10.244.1.0", 15)
UPLINK = "tap0"
_HUB = Path(__file__).with_name("hub.py")
_ANSWER_SECONDS = 20.0
_UPLINK_PAUSE_SECONDS = 1.0
_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_ENV = {"PATH": _PATH}
_NOTHING = subprocess.DEVNULL
_NFT = "nft"
_TRIED = """
table inet tried {
  chain input { type filter hook input priority filter; policy accept; ct state established accept; }
}
delete table inet tried
"""
log = logging.getLogger("devcluster")


async def begin() -> PodNetwork:
    """Return a network of the pods' own; if that is impossible, log why and share this machine's."""
    try:
        return await OwnNetwork.begin()
    except CannotHave as error:
        log.warning(
            "pods share this machine's network, reach what listens on its loopback, and are held to no "
            "NetworkPolicy: %s",
            error,
        )
        return SharedNetwork()


class CannotHave(Exception):
    """Failure to make a network of the pods' own; the text names the missing part."""


class OwnNetwork:
    """Network of the pods' own, made by `begin`; all of it ends with this process, even after a crash."""

    nameserver: str | None = NAMESERVER

    def __init__(self, hub: "_Hub"):
        self.addresses = Addresses(*PODS)
        self.outside = through(GATEWAY, NETWORK, seen(os.environ))
        self._doors: list[Proxy] = []
        self._hub = hub
        self.enforces = False
        self.rules: Rules = lambda pod_uid: ""
        self._namespaces: dict[str, int] = {}
        self._loaded: dict[str, str] = {}
        self._joining = asyncio.Lock()
        self._uplink: asyncio.Task[None] | None = None

    @classmethod
    async def begin(cls) -> "OwnNetwork":
        for program, package in (("slirp4netns", "slirp4netns"), ("ip", "iproute2")):
            if shutil.which(program, path=_PATH) is None:
                raise CannotHave(f"{program} is missing: apt install {package}")
        network = cls(await asyncio.to_thread(_Hub))
        up = asyncio.get_running_loop().create_future()
        network._uplink = asyncio.ensure_future(network._keep_uplink(up))
        try:
            await asyncio.wait_for(up, _ANSWER_SECONDS)
        except (OSError, TimeoutError) as error:
            await network.close()
            raise CannotHave(f"slirp4netns does not start: {error}") from error
        for port in network.outside.ports:
            await network._open_door(port)
        try:
            await network._nft(f"/proc/{network._hub.pid}/ns/net", _TRIED)
            network.enforces = True
        except OSError as error:
            log.warning("NetworkPolicies are stored and not enforced: %s", error)
        return network

    async def _open_door(self, port: int) -> None:
        """Forward a port of the gateway to the same port of this machine's loopback."""
        door = Proxy(lambda: ("127.0.0.1", port), asyncio.open_connection)
        await door.listen(await self._hub.ask_for_socket(do="listen", port=port))
        self._doors.append(door)

    async def connect(self, address: str, port: int) -> Streams:
        link = await self._hub.ask_for_socket(do="dial")
        try:
            await asyncio.get_running_loop().sock_connect(link, (address, port))
        except BaseException:
            link.close()
            raise
        return await asyncio.open_connection(sock=link)

    async def join(self, pod_uid: str, address: str) -> list[str]:
        async with self._joining:  # containers of one pod start at the same time
            if pod_uid not in self._namespaces:
                self._namespaces[pod_uid] = await self._hub.ask_for(do="pod", address=address)
                try:
                    await self._load_rules(pod_uid)
                except OSError:
                    self.leave(pod_uid)  # nothing runs there without its rules
                    raise
        return ["nsenter", *self._hub.user, f"--net={self._path(pod_uid)}"]

    def _path(self, pod_uid: str) -> str:
        return f"/proc/{os.getpid()}/fd/{self._namespaces[pod_uid]}"

    async def renew_rules(self) -> bool:
        well = True
        for pod_uid in list(self._namespaces):
            async with self._joining:
                try:
                    if pod_uid in self._namespaces:
                        await self._load_rules(pod_uid)
                except OSError as error:
                    log.warning("rules of the pod %s: %s", pod_uid, error)
                    well = False
        return well

    async def _load_rules(self, pod_uid: str) -> None:
        """Load the pod's rules if they changed. A pod that is gone keeps the last ones until its processes end."""
        text = self.rules(pod_uid) if self.enforces else ""
        if text is None or text == self._loaded.get(pod_uid, ""):
            return
        await self._nft(self._path(pod_uid), text)
        if pod_uid in self._namespaces:
            self._loaded[pod_uid] = text

    async def _nft(self, namespace: str, text: str) -> None:
        """Load rules in a network namespace, all or nothing. Raise OSError with nft's words."""
        if shutil.which(_NFT, path=_PATH) is None:
            raise OSError("nft is missing: apt install nftables")
        process = await asyncio.create_subprocess_exec(
            "nsenter", *self._hub.user, f"--net={namespace}", _NFT, "-f", "-",
            stdin=asyncio.subprocess.PIPE,
            stdout=_NOTHING,
            stderr=asyncio.subprocess.PIPE,
            env=_ENV,
        )  # fmt: skip
        said = (await process.communicate(text.encode()))[1].decode(errors="replace").strip()
        if process.returncode:
            raise OSError(f"nft: {said.partition(chr(10))[0] or process.returncode}")

    def leave(self, pod_uid: str) -> None:
        self._loaded.pop(pod_uid, None)
        with contextlib.suppress(KeyError):
            os.close(self._namespaces.pop(pod_uid))

    async def close(self) -> None:
        if self._uplink:
            self._uplink.cancel()
            await asyncio.gather(self._uplink, return_exceptions=True)
        await asyncio.gather(*(door.close() for door in self._doors))
        for pod_uid in list(self._namespaces):
            self.leave(pod_uid)
        await asyncio.to_thread(self._hub.close)

    async def _keep_uplink(self, up: "asyncio.Future[None]") -> None:
        """Keep the way out running, and restart it if it ends. `up` gets the result of the first start."""
        while True:
            try:
                await self._once_uplink(up)
            except OSError as error:
                if not up.done():
                    up.set_exception(error)
                    return
                log.warning("the pods' way out ended and begins again: %s", error)
            await asyncio.sleep(_UPLINK_PAUSE_SECONDS)

    async def _once_uplink(self, up: "asyncio.Future[None]") -> None:
        heard, ready = os.pipe()
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "slirp4netns",
            "--disable-host-loopback",
            "--enable-sandbox",
        ]
        command += [f"--mtu={MTU}", f"--cidr={NETWORK}", f"--ready-fd={ready}", str(self._hub.pid), UPLINK]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=_NOTHING,
            stdout=_NOTHING,
            stderr=asyncio.subprocess.PIPE,
            pass_fds=[ready],
            env=_ENV,
        )
        os.close(ready)
        try:
            began = await asyncio.to_thread(os.read, heard, 1)
            if began:
                await self._hub.ask(do="uplink", device=UPLINK)
                if not up.done():
                    up.set_result(None)
            assert process.stderr is not None
            said = (await process.stderr.read()).decode(errors="replace").strip()
            raise OSError(f"{', '.join(said.splitlines()[-2:])} (exit {await process.wait()})")
        finally:
            os.close(heard)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


class _Hub:
    """Hub process in the pods' central namespace; it answers one question at a time."""

    def __init__(self) -> None:
        rootless = os.geteuid() != 0
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.settimeout(_ANSWER_SECONDS)
        self._asking = threading.Lock()
        command = ["unshare", "--net", *(["--user", "--map-root-user"] if rootless else [])]
        command += ["setpriv", "--pdeathsig", "KILL", sys.executable, "-I", "-S", str(_HUB)]
        command += [GATEWAY, str(PREFIX_BITS), ROUTER]
        with theirs:
            self._process = subprocess.Popen(
                command,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=_ENV,
            )
        self.pid = self._process.pid
        user = [f"--user=/proc/{self.pid}/ns/user", "--preserve-credentials"]
        self.user = user if rootless else []
        try:
            self._heard()
        except OSError as error:
            said = self._process.communicate()[1].strip()
            raise CannotHave(said.rpartition("\n")[2] or str(error)) from error

    async def ask(self, **question: Any) -> None:
        await asyncio.to_thread(self._ask, question)

    async def ask_for(self, **question: Any) -> int:
        """Return a descriptor from the hub."""
        return (await asyncio.to_thread(self._ask, question))[0]

    async def ask_for_socket(self, **question: Any) -> socket.socket:
        found = socket.socket(fileno=await self.ask_for(**question))
        found.setblocking(False)
        return found

    def _ask(self, question: dict[str, Any]) -> list[int]:
        with self._asking:
            self._link.send(json.dumps(question).encode())
            return self._heard()

    def _heard(self) -> list[int]:
        word, descriptors, _, _ = socket.recv_fds(self._link, 4096, 1)
        if word != b"ok":
            raise OSError(word.decode() or "the hub of the pods' network ended")
        return descriptors

    def close(self) -> None:
        self._link.close()
        self._process.kill()
        self._process.communicate()
