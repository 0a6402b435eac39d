"""Process in the pods' central network namespace: makes each pod's namespace, and the sockets that reach pods.

Started with nothing but the standard library (python -I -S). Stdin is a socket whose messages are one JSON object each;
every answer is a word (`ok`, or the error), with a descriptor if one was requested. When the socket closes, the
process ends, and the network with it.

    {"do": "uplink", "device": "tap0"}      the device to the outside, made by the user-mode network
    {"do": "pod", "address": "10.244.3.7"}  a namespace with that address; its descriptor
    {"do": "dial"}                          a TCP socket of this network, not yet connected
    {"do": "listen", "port": 3128}          a TCP socket that listens at the gateway
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

CLONE_NEWNET = 0x40000000
MTU = 65520
BRIDGE = "pods"
# Where clouds serve their machines' credentials: AWS, Google and others; Alibaba; Azure; Oracle.
METADATA = ("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")
HOME = "/proc/self/ns/net"
libc = ctypes.CDLL(None, use_errno=True)


def ip(*lines: str) -> None:
    # no environment but PATH, which is the kubelet's
    done = subprocess.run(
        ["ip", "-batch", "-"], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OSError(f"ip: {done.stderr.strip() or done.returncode}")


def sysctl(name: str, value: str) -> None:
    with suppress(OSError):  # with a read-only /proc/sys the kernel's setting stays
        Path("/proc/sys/net", name).write_text(value)


class Hub:
    def __init__(self, gateway: str, bits: int, router: str):
        self._gateway, self._bits, self._router = gateway, bits, router
        self._home = os.open(HOME, os.O_RDONLY | os.O_CLOEXEC)
        self._pods = 0
        ip(
            "link set lo up",
            f"link add {BRIDGE} type bridge",
            f"addr add {gateway}/{bits} dev {BRIDGE}",
            f"link set {BRIDGE} mtu {MTU} up",
        )

    def uplink(self, device: str) -> None:
        ip(f"link set {device} master {BRIDGE} mtu {MTU} up")

    def pod(self, address: str) -> int:
        """Make a namespace that its pod cannot change: its one address is on a cable to this namespace."""
        self._pods += 1
        cable = f"pod{self._pods}"
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "a network namespace")
        try:
            made = os.open(HOME, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._furnish(address, cable)
            except OSError:
                os.close(made)
                raise
        finally:
            self._return()
        ip(f"link set {cable} master {BRIDGE} mtu {MTU} up")
        return made

    def _furnish(self, address: str, cable: str) -> None:
        # As container runtimes do: in a network of its own, a pod may use ports below 1024 and ping.
        sysctl("ipv4/ip_unprivileged_port_start", "0")
        sysctl("ipv4/ping_group_range", "0 2147483647")
        ip(
            "link set lo up",
            f"link add eth0 mtu {MTU} type veth peer name {cable} netns /proc/{os.getpid()}/fd/{self._home}",
            f"addr add {address}/{self._bits} dev eth0",
            "link set eth0 up",
            f"route add default via {self._router}",
            *(f"route add unreachable {network}" for network in METADATA),
        )

    def _return(self) -> None:
        if libc.setns(self._home, CLONE_NEWNET):
            sys.exit("hub: cannot return to its network")

    def dial(self) -> int:
        return socket.socket().detach()

    def listen(self, port: int) -> int:
        found = socket.create_server((self._gateway, port))
        return found.detach()


def answer(hub: Hub, request: dict[str, Any]) -> tuple[str, int | None]:
    try:
        return "ok", getattr(hub, request.pop("do"))(**request)
    except OSError as error:
        return str(error), None


def main() -> None:
    gateway, bits, router = sys.argv[1:]
    link = socket.socket(fileno=0)
    try:
        hub = Hub(gateway, int(bits), router)
    except OSError as error:
        link.send(str(error).encode())
        sys.exit(1)
    link.send(b"ok")
    while message := link.recv(4096):
        word, descriptor = answer(hub, json.loads(message))
        socket.send_fds(link, [word.encode()], [] if descriptor is None else [descriptor])
        if descriptor is not None:
            os.close(descriptor)


if __name__ == "__main__":
    main()
