"""A kubelet's PodResources on a unix socket, by Google's own gRPC and protobuf, from the published api.proto."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FieldType = descriptor_pb2.FieldDescriptorProto
_WORD, _WHOLE, _MESSAGE = FieldType.TYPE_STRING, FieldType.TYPE_INT64, FieldType.TYPE_MESSAGE

# Name, number, type, repeated: the messages of a pod's resources in Kubernetes 1.34.
_MESSAGES: dict[str, list[tuple[str, int, Any, bool]]] = {
    "ListPodResourcesRequest": [],
    "ListPodResourcesResponse": [("pod_resources", 1, "PodResources", True)],
    "PodResources": [
        ("name", 1, _WORD, False),
        ("namespace", 2, _WORD, False),
        ("containers", 3, "ContainerResources", True),
    ],
    "ContainerResources": [
        ("name", 1, _WORD, False),
        ("devices", 2, "ContainerDevices", True),
        ("cpu_ids", 3, _WHOLE, True),
        ("memory", 4, "ContainerMemory", True),
    ],
    "ContainerMemory": [("memory_type", 1, _WORD, False), ("size", 2, FieldType.TYPE_UINT64, False)],
    "ContainerDevices": [
        ("resource_name", 1, _WORD, False),
        ("device_ids", 2, _WORD, True),
        ("topology", 3, "TopologyInfo", False),
    ],
    "TopologyInfo": [("nodes", 1, "NUMANode", True)],
    "NUMANode": [("ID", 1, _WHOLE, False)],
}


def _made() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            label = FieldType.LABEL_REPEATED if repeated else FieldType.LABEL_OPTIONAL
            added = message.field.add(name=field, number=number, label=label)
            added.type = _MESSAGE if isinstance(kind, str) else kind
            if isinstance(kind, str):
                added.type_name = f".v1.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"v1.{name}")) for name in _MESSAGES
    }


MESSAGES = _made()


def container(name: str, *devices: tuple[str, list[str]]) -> dict[str, Any]:
    """Return a container as the kubelet reports it, with CPUs, memory and NUMA nodes beside the devices."""
    return {
        "name": name,
        "devices": [
            {"resource_name": resource, "device_ids": ids, "topology": {"nodes": [{"ID": 1}]}}
            for resource, ids in devices
        ],
        "cpu_ids": [4, 300],
        "memory": [{"memory_type": "hugepages-1Gi", "size": 1 << 40}],
    }


def answer(*pods: tuple[str, str, list[dict[str, Any]]]) -> bytes:
    """Return the serialized response for pods given as (namespace, name, containers)."""
    response = MESSAGES["ListPodResourcesResponse"](
        pod_resources=[
            {"namespace": namespace, "name": name, "containers": containers}
            for namespace, name, containers in pods
        ]
    )
    return bytes(response.SerializeToString())


@contextmanager
def serving(path: Path, tell: Callable[[grpc.ServicerContext], bytes]) -> Iterator[None]:
    def listed(request: bytes, context: grpc.ServicerContext) -> bytes:
        MESSAGES["ListPodResourcesRequest"].FromString(request)
        return tell(context)

    server = grpc.server(ThreadPoolExecutor(2))
    handler = grpc.unary_unary_rpc_method_handler(listed)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler}),)
    )
    server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield
    finally:
        server.stop(None).wait()
