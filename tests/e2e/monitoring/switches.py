"""Troubles of the trial cluster, by the code of the alert that each has to raise, and how they are switched on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from monitoring.dcgm.prometheus import Series
from monitoring.health import supplies
from monitoring.parts import load
from tests.e2e.stack import Client, Stack, until
from tests.shared.servers.prometheus import Server

# A node each, so that no trouble hides another: what is switched on there.
OF_NODES: dict[str, dict[str, Any]] = {
    "gpu_driver_not_loaded": {"agent": "driver_not_loaded"},
    "gpu_driver_mismatch": {"agent": "version_mismatch"},
    "gpu_nvml_failed": {"agent": "nvml_failed"},
    "gpu_uvm_missing": {"agent": "uvm_missing"},
    "gpu_vanished": {"agent": "devices_denied"},
    "gpu_stuck": {"agent": "nvml_hangs"},
    "gpu_agent_limited": {"agent": "no_permission"},
    "node_short_of_disk": {"pressure": "disk"},
    "node_short_of_memory": {"pressure": "memory"},
    "network_plugin_down": {"state": "not-ready"},
    "node_unwell": {"state": "runtime-down"},
    "node_lost": {"state": "off"},
    "agent_silent": {"agent": "silent"},
    "gpu_plugin_down": {"dead_gpus": 1},
}
OF_GPUS: dict[str, dict[str, Any]] = {
    "gpu_lost": {"xid": 79},
    "gpu_memory_damaged": {"ecc_uncorrected": 2},
    "gpu_link_fault": {"xid": 74},
    "gpu_repair_due": {"row_remap": "pending"},
    "gpu_slowed": {"hot": True},
    "gpu_program_fault": {"xid": 31},
}
TESTED = "gpu_test_failed"
# Steps and errors of a volume. The first comes before the node has attached it; the others are words of a mount.
_DISK = '"/dev/rbd0"'
OF_VOLUMES = {
    "volume_attached_elsewhere": ("attach", "elsewhere"),
    "volume_damaged": ("mount", "superblock"),
    "storage_unwell": ("mount", "mds"),
    "volume_not_mountable": ("mount", "denied"),
    "volume_disk_full": ("mount", "rpc error: code = Internal desc = no space left on device"),
    "volume_formatting": (
        "mount",
        f"Disk {_DISK} appears to be unformatted, attempting to format as type: ext4",
    ),
    "volume_failed": ("mount", "rpc error: code = Internal desc = exit status 1"),
}
OF_ADDRESSES = ("addresses_nearly_used_up", "addresses_used_up")
OF_PARTS = (
    "part_crashing", "part_not_ready", "part_missing", "part_absent", "part_versions_differ", "versions_unfit",
    "node_versions_differ",
)  # fmt: skip
OF_LOAD = ("node_overloaded", "node_network_faulty", "ceph_unwell", "volume_nearly_full")
# Told by routes that want all, and never by mail to all admins.
INFO = {"gpu_program_fault", "node_versions_differ", "agent_token_unused"}
CODES = {*OF_NODES, *OF_GPUS, TESTED, *OF_VOLUMES, *OF_ADDRESSES, *OF_PARTS, *OF_LOAD}

_GPUS = 'gpus: {product: NVIDIA-A100-SXM4-80GB, memory_mib: 81920, count: 1, compute: "8.0"}'
NODES = f"""
nodes:
- {{name: gpu, count: {len(OF_NODES) + len(OF_GPUS) + 1}, cpu: 64, memory: 512Gi, {_GPUS}}}
- {{name: old, cpu: 64, memory: 512Gi, info: {{kubeletVersion: v1.35.4}}, {_GPUS}}}
- {{name: shared, cpu: 64, memory: 512Gi,
   gpus: {{product: Tesla-T4, memory_mib: 15360, count: 1, compute: "7.5", sharing: hami, split: 10}}}}
- {{name: cpu, cpu: 64, memory: 512Gi}}
lifecycle: {{grace_seconds: 2}}
back_off: {{first_seconds: 1, most_seconds: 2}}
"""
FAILS = "devcluster.local/simulated-vectoradd:fails"
PARTS = "/api/v1/namespaces/kube-system/pods"
# Longer than an update of nodes takes (parts/lasting.py): the trial does not wait for that.
MADE_OLDER = "UPDATE monitoring_suspicion SET since = since - interval '31 minutes'"


class Switches:
    """Switches of one trial. `at`: when each was switched on, in seconds since 1970."""

    def __init__(self, stack: Stack, alice: Client, prometheus: Server) -> None:
        self.stack, self.alice, self.prometheus = stack, alice, prometheus
        self.at: dict[str, float] = {}
        self._call = stack.transport().request

    def all(self, in_between: Callable[[], None]) -> None:
        """Switch all on. Call `in_between` when most has begun and is not told yet."""
        nodes = self._names("gpu-%")
        until("agents report", lambda: len(self.stack.rows("SELECT 1 FROM clusters_gpu")) >= len(nodes), 120)
        self.parts(nodes)
        self.load()
        self.gpu_test(nodes.pop())
        for node, (code, spec) in zip(nodes, [*OF_NODES.items(), *OF_GPUS.items()], strict=True):
            about = {"node": node} if code in OF_NODES else {"gpu": f"{node}/0"}
            self._on(code)
            self.stack.fault(**about, **spec)
        in_between()
        self.volumes()
        self.addresses()
        self._wait_for_suspicions()
        with self.stack.database(read_only=False) as database:
            database.execute(MADE_OLDER)

    def _on(self, *codes: str) -> None:
        self.at |= dict.fromkeys(codes, time.time())

    def _names(self, like: str) -> list[str]:
        query = "SELECT name FROM clusters_node WHERE name LIKE %s ORDER BY name"
        return [row["name"] for row in self.stack.rows(query, like)]

    def _troubled(self, code: str) -> Callable[[], Any]:
        return lambda: self.stack.rows("SELECT 1 FROM monitoring_trouble WHERE code = %s", code)

    # --- parts of the cluster

    def parts(self, nodes: list[str]) -> None:
        self._on(*OF_PARTS)
        self.stack.fault(image="*metallb*", error="not-found")
        self.part("coredns", "registry.k8s.io/coredns/coredns:v1.12.1", "cpu", ends="1:1")
        self.part("metallb", "quay.io/metallb/controller:v0.15.2", "cpu")
        owner = self.set_of("calico")
        for node in (*nodes, "old", "shared"):  # not on the last one
            self.part(f"calico-{node}", "docker.io/calico/node:v3.30.1", node, owner)
        self.part("hami", "docker.io/projecthami/hami:v2.6.1", "shared", self.set_of("hami"))
        owner = self.set_of("proxy")
        for node, version in (("cpu", "v1.36.2"), ("old", "v1.35.4")):
            self.part(f"proxy-{node}", f"registry.k8s.io/kube-proxy:{version}", node, owner)
        toolkit = "nvcr.io/nvidia/k8s/container-toolkit:v1.17.7-ubi8"
        self.part("toolkit", toolkit, "old", self.set_of("toolkit"))

    def part(
        self, name: str, image: str, node: str, owner: dict[str, Any] | None = None, ends: str = ""
    ) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "annotations": {"devcluster.local/ends": ends} if ends else {},
                "ownerReferences": [owner] if owner else [],
            },
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main", "image": image}],
                "tolerations": [{"operator": "Exists"}],
            },
        }
        self._call("POST", PARTS, body=body, repeatable=False)

    def set_of(self, name: str) -> dict[str, Any]:
        """Make a DaemonSet, which the trial only stores. Return the reference that its pods have."""
        about = {"matchLabels": {"app": name}}
        template = {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": f"{name}:1"}]},
        }
        body = {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": name},
            "spec": {"selector": about, "template": template},
        }
        made = self._call(
            "POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", body=body, repeatable=False
        )
        same = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name}
        return {**same, "uid": made["metadata"]["uid"], "controller": True}

    def _wait_for_suspicions(self) -> None:
        """Wait until all was seen once that has to last."""
        lasting = (*OF_PARTS[2:], "node_network_faulty")

        def missing() -> list[str]:
            keys = [row["key"] for row in self.stack.rows("SELECT key FROM monitoring_suspicion")]
            return [code for code in lasting if not any(f" {code} " in key for key in keys)]

        until("all that has to last was seen", lambda: not missing(), 120, pause=1)

    # --- what a Prometheus tells

    def load(self) -> None:
        figures = {figure.name: figure.expression for figure in (*load.NODES, *load.STORAGE)}
        node = {"nodename": "cpu"}
        claim = {"namespace": "berth-demo", "persistentvolumeclaim": "home"}
        for name, labels, value in (
            (f"({figures['disk_percent']})", node, 95),
            (f"({figures['network_in_errors']})", node, 50),
            (f"({figures['status']})", {}, load.CEPH_ERROR),
            (f"({figures['checks']})", {"name": "OSD_DOWN", "severity": "HEALTH_ERR"}, 1),
            (supplies.AVAILABLE, claim, 1 << 20),
            (supplies.CAPACITY, claim, 1 << 30),
        ):
            self.prometheus.told[name] = [Series(dict(labels), [(time.time(), float(value))])]
        self._on(*OF_LOAD)
        self.set_in_cluster(prometheus_url=self.prometheus.url)

    def set_in_cluster(self, **values: str) -> None:
        self.stack.manage(
            "shell", "-c", f"from clusters.models import Cluster; Cluster.objects.update(**{values!r})"
        )

    # --- a test of a node's GPUs

    def gpu_test(self, node: str) -> None:
        self.set_in_cluster(validation_image=FAILS)
        start = (
            "from clusters.models import Node; from monitoring.validation import starting; "
            f"starting.start(None, starting.plans(Node.objects.filter(name={node!r}))[0])"
        )
        self.stack.manage("shell", "-c", start)
        self._on(TESTED)

    # --- volumes and addresses of workspaces

    def volumes(self) -> None:
        for code, (step, error) in OF_VOLUMES.items():
            self._on(code)
            number = self.stack.fault(volume=step, error=error)
            self.launch(code.replace("_", "-"))
            until(f"{code} is seen", self._troubled(code), 120)
            self.stack.end_faults(number)

    def launch(self, name: str, by: Client | None = None, tenant: str = "demo") -> str:
        body = {
            "tenant": tenant,
            "name": name,
            "image": "jupyter",
            "pool": "cpu",
            "cpu": 1,
            "memory_mib": 1024,
        }
        status, made = (by or self.alice)("POST", "workspaces/", body)
        assert status == 201, made
        return str(made["id"])

    def addresses(self) -> None:
        """Leave one address of many, then none."""
        spec = {"type": "LoadBalancer", "ports": [{"port": 80}]}
        for number in range(10):
            body = {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": f"other-{number}"},
                "spec": spec,
            }
            self._call("POST", "/api/v1/namespaces/default/services", body=body, repeatable=False)

        def assigned() -> int:
            pools = self._call("GET", "/apis/metallb.io/v1beta1/ipaddresspools")
            return int(pools["items"][0]["status"]["assignedIPv4"])

        until("all have addresses", lambda: assigned() >= 10 + len(OF_VOLUMES), 60)
        for code, left in zip(OF_ADDRESSES, (1, 0), strict=True):
            self._on(code)
            number = self.stack.fault(addresses=assigned() + left)
            until(f"{code} is seen", self._troubled(code), 120)
            self.stack.end_faults(number)
