"""Command line of devcluster; the package's docstring describes its use."""

import argparse
import asyncio
import dataclasses
import logging
import os
import signal
import sys
from pathlib import Path

from devcluster import instance, nodes
from devcluster.cluster import Cluster, Options
from devcluster.gpuplay.agent import Portal
from devcluster.kubelet.network import podnetwork
from devcluster.kubelet.processes import namespaces
from devcluster.network import SharedNetwork
from devcluster.nodes import Image, NodeFile


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="devcluster", description="A Kubernetes API for a trial on this machine."
    )
    parser.add_argument(
        "--state-dir", type=Path, required=True, help="all that it keeps; created with mode 0700"
    )
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0 takes a free one")
    parser.add_argument(
        "--nodes", type=Path, help="the node file (see devcluster/nodes.py); without it, demo nodes"
    )
    parser.add_argument("--pods", choices=("process", "played"), default="process")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="written when ready, mode 0600")
    parser.add_argument(
        "--image", action="append", default=[], metavar="REF=ROOT", help="an image: a folder or venv"
    )
    parser.add_argument(
        "--agent-portal", metavar="URL", help="the portal that simulated agents tell of the GPUs"
    )
    parser.add_argument("--agent-token-file", type=Path, help="the agents' token; it may come later")
    arguments = parser.parse_args()
    if bool(arguments.agent_portal) != bool(arguments.agent_token_file):
        parser.error("--agent-portal and --agent-token-file go together")
    return arguments


def _with_images(file: NodeFile, given: list[str]) -> NodeFile:
    if not given:
        return file
    images = dict(file.images or {})
    for entry in given:
        reference, separator, root = entry.partition("=")
        if not separator or not Path(root).is_dir():
            sys.exit(f"devcluster: --image {entry}: not REF=ROOT with a folder ROOT")
        known = images.get(reference, Image())
        images[reference] = dataclasses.replace(known, root=Path(root).resolve())
    return dataclasses.replace(file, images=images)


async def _serve(options: Options) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    network = await podnetwork.begin() if options.process_pods else SharedNetwork()
    await Cluster(options, network).run(stop)


def main() -> None:
    if sys.platform != "linux":
        sys.exit("devcluster: runs on Linux only")
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s devcluster %(levelname)s %(message)s")
    arguments = _arguments()
    os.umask(0o022)
    state = arguments.state_dir.resolve()
    try:
        held = instance.lock(state)
    except instance.Busy as error:
        sys.exit(f"devcluster: {error}")
    instance.end_leftovers(state)
    process_pods = arguments.pods == "process"
    file = _with_images(nodes.read(arguments.nodes), arguments.image)
    if process_pods:
        file = dataclasses.replace(file, images=file.images or {})
        namespaces.prepare(state)
    portal = (
        Portal(arguments.agent_portal, arguments.agent_token_file.resolve())
        if arguments.agent_portal
        else None
    )
    options = Options(state, arguments.port, file, process_pods, arguments.kubeconfig.resolve(), portal)
    asyncio.run(_serve(options))
    os.close(held)


if __name__ == "__main__":
    main()
