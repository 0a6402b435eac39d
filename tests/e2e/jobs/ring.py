"""Training in a ring, for tests: each step sums a value over all ranks by sockets, and rank 0 keeps checkpoints.

Every rank comes to the same state, which depends on each value of each rank in each step. Runs in a container with the
standard library alone. `LOSES` is a rank that kills itself in its first attempt, `PAUSE` the seconds of a step.
"""

import json
import os
import pathlib
import signal
import socket
import struct
import time

RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
MASTER = os.environ.get("MASTER_ADDR", ""), int(os.environ.get("MASTER_PORT", "0"))
STEPS, PRIME = 12, 1_000_000_007
PATIENCE = 15.0


def value(rank: int, step: int, state: int) -> int:
    return (state * (rank + 2) + step * step + rank) % PRIME


def connect(address: tuple[str, int]) -> socket.socket:
    for _attempt in range(300):
        try:
            return socket.create_connection(address, PATIENCE)
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"{address} cannot be reached")


def receive(peer: socket.socket) -> int:
    data = b""
    while len(data) < 8:
        got = peer.recv(8 - len(data))
        if not got:
            raise SystemExit("the rank before this one is gone")
        data += got
    return int(struct.unpack("!q", data)[0])


def addresses(own: socket.socket) -> list[tuple[str, int]]:
    """Return where each rank listens: each tells rank 0, which tells all."""
    mine = [os.environ["POD_IP"], own.getsockname()[1]]
    if RANK:
        with connect(MASTER) as master, master.makefile("rw") as file:
            print(json.dumps([RANK, mine]), file=file, flush=True)
            return [(host, port) for host, port in json.loads(file.readline())]
    table = {0: mine}
    files = []
    with socket.create_server(("", MASTER[1])) as door:
        while len(table) < WORLD:
            peer, _address = door.accept()
            files.append(peer.makefile("rw"))
            rank, where = json.loads(files[-1].readline())
            table[rank] = where
    for file in files:
        print(json.dumps([table[rank] for rank in range(WORLD)]), file=file, flush=True)
    return [(host, port) for host, port in (table[rank] for rank in range(WORLD))]


def summed(number: int, left: socket.socket, right: socket.socket) -> int:
    """Return the sum over all ranks: each number goes once around the ring."""
    total = moving = number
    for _hop in range(WORLD - 1):
        right.sendall(struct.pack("!q", moving))
        moving = receive(left)
        total += moving
    return total % PRIME


def main() -> None:
    own = socket.create_server(("", 0))
    table = addresses(own)
    right = connect(table[(RANK + 1) % WORLD])
    left, _address = own.accept()
    left.settimeout(PATIENCE)
    checkpoint = pathlib.Path(os.environ["BERTH_CHECKPOINT_DIR"]) / "state.json"
    kept = json.loads(checkpoint.read_text()) if checkpoint.exists() else {"step": 0, "state": 1}
    step, state = kept["step"], kept["state"]
    print(f"rank {RANK} goes on from step {step}", flush=True)
    while step < STEPS:
        is_first = os.environ["BERTH_ATTEMPT"] == "1"
        if step == 5 and is_first and os.environ.get("LOSES") == str(RANK):
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(float(os.environ.get("PAUSE", "0")))
        state = (state * 31 + summed(value(RANK, step, state), left, right)) % PRIME
        step += 1
        if RANK == 0:
            fresh = checkpoint.with_suffix(".new")
            fresh.write_text(json.dumps({"step": step, "state": state}))
            fresh.replace(checkpoint)
    if RANK == 0:
        pathlib.Path(os.environ["RESULT"]).write_text(str(state))


def expected(world: int) -> int:
    state = 1
    for step in range(STEPS):
        state = (state * 31 + sum(value(rank, step, state) for rank in range(world))) % PRIME
    return state


if __name__ == "__main__":
    main()
