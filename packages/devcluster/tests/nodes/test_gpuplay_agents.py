"""Reports of the simulated agents: in the real agent's form, at once, in order and without duplicates."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from devcluster.api import Api
from devcluster.fleet import AGENT, KUBELET_SILENT, SILENT, WITHOUT_GPUS
from devcluster.gpuplay.agent import MEASURE_SECONDS, Looker, Portal, Stream
from devcluster.resources import Obj
from devcluster.testing.gpubench import NOW, Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def batch(bench: Bench, node: str) -> Obj:
    looker = bench.lookers[node]
    stream = Stream(bench.fleet.named(node), looker, Portal("http://127.0.0.1:1", Path("none")), 3.0)
    told: Obj = json.loads(stream.batch([json.dumps(looker.look(NOW) | {"sequence": 1})]))
    return told


def test_the_driver_is_the_one_that_the_nodes_labels_tell_of(bench: Bench) -> None:
    versions = {name: batch(bench, name)["inventory"]["driver_version"] for name in ("whole", "cut")}
    assert versions == {"whole": "535.1.2", "cut": "580.95.05"}


@pytest.mark.parametrize("missing", [word for word in AGENT if word != SILENT])
def test_what_an_agent_finds_missing_it_says_and_goes_on(bench: Bench, missing: str) -> None:
    bench.switch(node="whole", agent=missing)
    seen = bench.look("whole")
    (told,) = seen["troubles"]
    assert (told["code"], bool(told["detail"])) == (missing, True)
    assert "{" not in told["detail"]
    assert len(seen["gpus"]) == (0 if missing in WITHOUT_GPUS else 2)


def test_an_agent_whose_kubelet_is_silent_knows_no_holdings(bench: Bench) -> None:
    bench.run("a", "whole")
    assert len(bench.look("whole")["holdings"]) == 1
    bench.switch(node="whole", agent=KUBELET_SILENT)
    assert "holdings" not in bench.look("whole")


def test_the_use_of_volumes_is_reported_now_and_then(bench: Bench) -> None:
    use = {"namespace": "ns", "claim": "c", "used_mib": 1, "capacity_mib": 2}
    node = bench.fleet.named("whole")
    looker = Looker(
        Api(bench.store),
        node,
        bench.devices,
        lambda uid: 0.0,
        "steady 50",
        lambda name: [use] * (name == "whole"),
    )
    assert [looker.look(NOW + at).get("volumes") for at in (0, 1, MEASURE_SECONDS)] == [[use], None, [use]]


class Receiver:
    """Portal that accepts reports while it is up; `status` is its answer."""

    def __init__(self) -> None:
        self.batches: list[Obj] = []
        self.tokens: list[str] = []
        self.status = 200
        self.came = asyncio.Event()

    async def take(self, request: web.Request) -> web.Response:
        assert request.path == "/api/v1/agent/samples/"
        if self.status == 200:
            self.batches.append(await request.json())
            self.tokens.append(request.headers["Authorization"])
        self.came.set()
        return web.Response(status=self.status)

    async def next(self) -> None:
        self.came.clear()
        await asyncio.wait_for(self.came.wait(), 30)

    @property
    def sequences(self) -> list[int]:
        return [report["sequence"] for batch in self.batches for report in batch["reports"]]


Telling = tuple[Receiver, Stream, ClientSession]


@asynccontextmanager
async def portal(bench: Bench, folder: Path, every_seconds: float) -> AsyncIterator[Telling]:
    """Run a portal, with the stream of a node to it."""
    receiver, app = Receiver(), web.Application()
    app.router.add_post("/{path:.*}", receiver.take)
    (folder / "token").write_text("bra_1_2\n")
    async with TestServer(app) as server, ClientSession() as session:
        portal = Portal(str(server.make_url("/")), folder / "token")
        stream = Stream(bench.fleet.named("whole"), bench.lookers["whole"], portal, every_seconds)
        bench.fleet.listen(lambda _: stream.wake())
        yield receiver, stream, session


@asynccontextmanager
async def telling(bench: Bench, folder: Path, every_seconds: float) -> AsyncIterator[Receiver]:
    """Run a portal and the stream of a node to it."""
    async with portal(bench, folder, every_seconds) as (receiver, stream, session):
        task = asyncio.ensure_future(stream.run(session, 0.0))
        yield receiver
        task.cancel()


async def test_what_is_switched_is_told_at_once(bench: Bench, tmp_path: Path) -> None:
    async with telling(bench, tmp_path, every_seconds=3600) as receiver:
        await receiver.next()
        bench.switch(gpu="whole/0", xid=79)
        await receiver.next()
    assert [x["xid"] for x in receiver.batches[-1]["reports"][-1]["xids"]] == [79]
    assert set(receiver.tokens) == {"Bearer bra_1_2"}


async def test_what_the_portal_did_not_take_is_kept_and_comes_in_order(bench: Bench, tmp_path: Path) -> None:
    async with telling(bench, tmp_path, every_seconds=0.05) as receiver:
        await receiver.next()
        receiver.status = 503
        await receiver.next()
        receiver.status = 200
        await receiver.next()
        await receiver.next()
    assert receiver.sequences == list(range(1, len(receiver.sequences) + 1))
    assert all(batch["dropped"] == 0 for batch in receiver.batches)


def test_what_is_too_much_to_keep_is_counted(bench: Bench, tmp_path: Path) -> None:
    portal = Portal("http://127.0.0.1:1", tmp_path / "none")
    stream = Stream(bench.fleet.named("whole"), bench.lookers["whole"], portal, 60.0)
    for _ in range(13):
        stream.look()
    assert json.loads(stream.batch([]))["dropped"] == 3


async def test_a_node_without_network_tells_later_and_one_without_power_begins_anew(
    bench: Bench, tmp_path: Path
) -> None:
    async with portal(bench, tmp_path, every_seconds=3600) as (receiver, stream, session):

        async def look() -> None:
            stream.wake()
            await stream.step(session)

        await look()
        cut = bench.switch(node="whole", state="unreachable")
        await look()
        await look()
        assert receiver.sequences == [1]
        bench.faults.remove(cut)
        await look()
        assert receiver.sequences == [1, 2, 3, 4]
        off = bench.switch(node="whole", state="off")
        await look()
        bench.faults.remove(off)
        await look()
    assert receiver.sequences == [1, 2, 3, 4, 1]
    assert receiver.batches[-1]["agent"] != receiver.batches[0]["agent"]
