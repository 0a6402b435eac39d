"""Whole cluster in one process: store, API, controllers, scheduler, kubelets, server; started and stopped in order."""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from devcluster import instance, memory, storage
from devcluster.access.authentication import Authentication
from devcluster.access.tokens import Tokens
from devcluster.api import CONTROLLER, Api, Writer
from devcluster.controllers.base import Controller
from devcluster.controllers.clusterroles import ClusterRoleController, create_defaults
from devcluster.controllers.garbage import GarbageCollector
from devcluster.controllers.namespaces import NamespaceController
from devcluster.controllers.nodes.evictions import TaintEviction
from devcluster.controllers.nodes.lifecycle import NodeController
from devcluster.controllers.nodes.podgc import PodGarbageCollector
from devcluster.controllers.quotas import QuotaController
from devcluster.controllers.services import ServiceController
from devcluster.controllers.storage.attachments import AttachmentController
from devcluster.controllers.storage.ephemeral import EphemeralController
from devcluster.controllers.storage.provisioner import Provisioner
from devcluster.controllers.storage.resizer import Resizer
from devcluster.controllers.storage.snapshots import SnapshotController
from devcluster.controllers.storage.volumes import VolumeController
from devcluster.controllers.workloads.deployments import DeploymentController
from devcluster.controllers.workloads.disruptions import DisruptionController
from devcluster.controllers.workloads.jobs import JobController
from devcluster.controllers.workloads.replicasets import ReplicaSetController
from devcluster.controllers.workloads.statefulsets import StatefulSetController
from devcluster.errors import ApiError
from devcluster.events import expire
from devcluster.faults.callfaults import CallFaults
from devcluster.faults.podfaults import PodFaults
from devcluster.faults.pullfaults import PullFaults
from devcluster.faults.registry import Faults
from devcluster.faults.volumefaults import VolumeFaults
from devcluster.fleet import Fleet
from devcluster.gpuplay.agent import Portal, SimulatedAgents
from devcluster.gpuplay.ailments import GpuFaults
from devcluster.gpuplay.devices import Devices
from devcluster.gpuplay.lives import BY_CPU
from devcluster.kubelet.agent import Kubelets
from devcluster.kubelet.containers.images import Images
from devcluster.kubelet.host import Host
from devcluster.kubelet.network.enforcing import PolicyController
from devcluster.kubelet.network.names import Names
from devcluster.kubelet.nodes.reports import Reports
from devcluster.kubelet.played import PlayedRuntime
from devcluster.kubelet.processes.process import ProcessRuntime
from devcluster.kubelet.runtime import Runtime
from devcluster.kubelet.storage.disks import Disks
from devcluster.kubelet.storage.mounting import Mounting
from devcluster.metering import Metering
from devcluster.network import BALANCERS, Addresses, PodNetwork
from devcluster.nodes import NodeFile
from devcluster.resources import KINDS, NAMESPACE, SERVICE_CIDR, Obj
from devcluster.rules import defaults
from devcluster.scheduling.scheduler import Scheduler, create_priority_classes
from devcluster.serving import tls
from devcluster.serving.server import Server
from devcluster.storage import Data, NoData
from devcluster.store import Store, clone

log = logging.getLogger("devcluster")
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
SERVICE_NETWORK = "10.96.0.0/12"  # Services get their addresses from it: rules/defaults.py
EXPIRY_SECONDS = 300


@dataclass(frozen=True)
class Options:
    state: Path
    port: int
    file: NodeFile
    process_pods: bool
    kubeconfig: Path
    portal: Portal | None = None
    """Whom the simulated agents tell of the GPUs."""


class Cluster:
    def __init__(self, options: Options, network: PodNetwork):
        self._options, self._network = options, network
        self.store = Store(options.state / "objects.sqlite")
        api = self.api = Api(self.store)
        disks = self._disks = Disks(options.state)
        self._tokens = Tokens(self.store, options.state)
        self._tls, self._certificate = tls.context(options.state)
        self.faults, self._calls = Faults(), CallFaults(self.store.compact)
        fleet = Fleet(options.file)
        pulls, volumes = PullFaults(fleet), VolumeFaults()
        # Made before other listeners of the fleet, so that a reboot ends GPU faults first.
        devices, gpu_faults, pod_faults = Devices(fleet), GpuFaults(fleet), PodFaults(fleet)
        runtime: Runtime = (
            ProcessRuntime(options.state, network)
            if options.process_pods
            else PlayedRuntime(options.file.played)
        )
        images = Images(options.file.images, pulls)
        mounting = Mounting(api, disks if options.process_pods else None, volumes)
        names = Names(api, options.state)
        host = Host(
            api=api,
            state=options.state,
            runtime=runtime,
            images=images,
            mounting=mounting,
            fleet=fleet,
            tokens=self._tokens,
            network=network,
            names=names,
            ready_seconds=options.file.played.ready_seconds,
            pauses=options.file.back_off,
            pod_faults=pod_faults,
        )
        self._kubelets, self._reports = Kubelets(api, host, fleet, devices), Reports(api, fleet, images)
        self._metering = Metering(
            self.store, fleet, self._kubelets, runtime, options.file.metrics.every_seconds
        )
        self._agents = options.portal and SimulatedAgents(
            api,
            fleet,
            devices,
            options.portal,
            cores_of=self._metering.cores_of,
            life=BY_CPU if options.process_pods else "training",
            uses_of=mounting.uses,
        )
        self._services = ServiceController(
            api, Addresses(*BALANCERS), network.connect if options.process_pods else None
        )
        data: Data = disks if options.process_pods else NoData()
        self._controllers = self._make_controllers(fleet, volumes, data)
        if options.process_pods:
            self._controllers.append(names)
        self.faults.offer(
            *self._calls.switches,
            pulls.switch,
            volumes.switch,
            fleet.switch,
            gpu_faults.switch,
            pod_faults.switch,
            self._metering.switch,
            self._services.switch,
        )

    def _make_controllers(self, fleet: Fleet, volumes: VolumeFaults, data: Data) -> list[Controller[Any]]:
        api, lifecycle = self.api, self._options.file.lifecycle
        return [
            NamespaceController(api, self._certificate),
            GarbageCollector(api),
            VolumeController(api),
            Provisioner(api, data, volumes),
            Resizer(api, data, volumes),
            SnapshotController(api, data, volumes),
            EphemeralController(api),
            AttachmentController(api, volumes, lifecycle.detach_seconds),
            QuotaController(api),
            ClusterRoleController(api),
            StatefulSetController(api),
            ReplicaSetController(api),
            DeploymentController(api),
            JobController(api),
            DisruptionController(api),
            NodeController(api, fleet, lifecycle),
            TaintEviction(api),
            PodGarbageCollector(api, lifecycle),
            self._services,
            *([PolicyController(api, self._network)] if self._network.enforces else []),
            Scheduler(api),
        ]

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until `stop` is set."""
        self._furnish()
        token = instance.token(self._options.state)
        authentication = Authentication(self.store, token, self._tokens)
        server = Server(
            self.api,
            authentication,
            self.faults,
            self._calls,
            self._kubelets,
            self._metering,
            self._services,
        )
        runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self._options.port, ssl_context=self._tls)
        await site.start()
        port = runner.addresses[0][1]
        tasks = [asyncio.create_task(c.run()) for c in self._controllers]
        tasks += [asyncio.create_task(self._expire_events()), asyncio.create_task(memory.spare())]
        tasks += [asyncio.create_task(self._reports.run()), asyncio.create_task(self._metering.run())]
        if self._agents:
            tasks.append(asyncio.create_task(self._agents.run()))
        self._kubelets.start()
        self._switch_on(self._options.file.faults)
        url = f"https://127.0.0.1:{port}"
        instance.write_kubeconfig(self._options.kubeconfig, url, self._certificate, token)
        kind = "process" if self._options.process_pods else "played"
        print(
            f"devcluster is ready at {url} ({kind} pods), kubeconfig {self._options.kubeconfig}", flush=True
        )
        await stop.wait()
        await self._kubelets.close()
        server.closing.set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._services.close()
        await runner.cleanup()
        await self._network.close()
        self._disks.close()
        self.store.close()

    def _switch_on(self, faults: list[Obj]) -> None:
        for spec in faults:
            try:
                self.faults.add(spec)
            except ApiError as error:
                log.warning("node file: fault %s: %s", spec, error.message)

    def _furnish(self) -> None:
        """Create the objects that every cluster has from its start."""
        self._complete()
        for name in NAMESPACES:
            if self.store.get(NAMESPACE, "", name) is None:
                self.api.create(NAMESPACE, "", {"metadata": {"name": name}}, Writer(CONTROLLER))
        if self.store.get(SERVICE_CIDR, "", "kubernetes") is None:
            network = {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [SERVICE_NETWORK]}}
            self.api.create(SERVICE_CIDR, "", network, Writer(CONTROLLER))
        self._reports.start()
        storage.furnish(self.api)
        create_defaults(self.api)
        create_priority_classes(self.api)

    def _complete(self) -> None:
        """Fill in defaults that are newer than the stored objects, without counting as a change by anybody."""
        for kind in KINDS:
            for kept in self.store.each(kind):
                now = clone(kept)
                defaults.fill(kind, now)
                if now != kept:
                    self.store.put(kind, now)

    async def _expire_events(self) -> None:
        while True:
            await asyncio.sleep(EXPIRY_SECONDS)
            expire(self.api)
