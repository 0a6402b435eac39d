"""Devices of this node by container, from the kubelet: devices without a running process are included.

They come from the kubelet's PodResources v1 (stable since Kubernetes 1.28), over its socket. The protobuf is parsed by
hand, as far as this one answer needs it. Unknown fields are skipped, as protobuf requires.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .unary import CallFailed, call

SOCKET = Path("/var/lib/kubelet/pod-resources/kubelet.sock")
TIMEOUT_SECONDS = 3
_METHOD = "/v1.PodResourcesLister/List"

# Field numbers in kubelet's podresources/v1/api.proto.
_PODS = 1
_POD_NAME, _POD_NAMESPACE, _POD_CONTAINERS = 1, 2, 3
_CONTAINER_NAME, _CONTAINER_DEVICES = 1, 2
_RESOURCE_NAME, _DEVICE_IDS = 1, 2


class Given(NamedTuple):
    """Device that the kubelet gave to a container."""

    namespace: str
    pod: str
    container: str
    resource: str
    device: str


def given_devices(path: Path, own_pod: str = "") -> list[Given]:
    """Return the devices, sorted, as the kubelet has no fixed order. Raise CallFailed if the answer is incomplete.

    A kubelet that has just started answers before it has read its pods from the API, as if no pod had devices; it knows
    static pods earlier. So an answer counts only if it names the agent's own pod.
    """
    answer = call(path, _METHOD, b"", TIMEOUT_SECONDS)
    if own_pod and own_pod not in {_word(pod, _POD_NAME) for pod in _parts(answer, _PODS)}:
        raise CallFailed("it does not know its pods yet")
    return sorted(read_answer(answer))


def read_answer(answer: bytes) -> Iterator[Given]:
    for pod in _parts(answer, _PODS):
        namespace, name = _word(pod, _POD_NAMESPACE), _word(pod, _POD_NAME)
        for container in _parts(pod, _POD_CONTAINERS):
            for devices in _parts(container, _CONTAINER_DEVICES):
                resource = _word(devices, _RESOURCE_NAME)
                for device in _parts(devices, _DEVICE_IDS):
                    yield Given(
                        namespace, name, _word(container, _CONTAINER_NAME), resource, _decoded(device)
                    )


def _parts(message: bytes, wanted: int) -> list[bytes]:
    return [value for number, value in _fields(message) if number == wanted]


def _word(message: bytes, wanted: int) -> str:
    """Return the last value of the field, as protobuf requires; "" if the field was not sent."""
    return _decoded((_parts(message, wanted) or [b""])[-1])


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield fields with a length (texts and messages) by number. Skip the other fields."""
    at = 0
    while at < len(message):
        key, at = _number(message, at)
        kind = key & 7
        if kind == 0:
            _, at = _number(message, at)
            continue
        length, at = _number(message, at) if kind == 2 else (_FIXED.get(kind, len(message)), at)
        if at + length > len(message):
            raise CallFailed("the answer is not what the kubelet should send")
        if kind == 2:
            yield key >> 3, message[at : at + length]
        at += length


_FIXED = {1: 8, 5: 4}


def _number(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise CallFailed("the answer is not what the kubelet should send")
