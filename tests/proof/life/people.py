"""People's actions, drawn at random: each person has a thread, a token and dice, and records every request.

If no answer comes, a request with an idempotency key is repeated, as a good script would; any other is left open.
"""

from __future__ import annotations

import base64
import http.client
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random
from typing import Any

from tests.e2e.stack import Client
from tests.proof.life.records import Asked, Json
from tests.proof.life.sockets import Sockets

NO_ANSWER = (OSError, http.client.HTTPException, ValueError)
TRIES = 40
PATIENCE_SECONDS = 0.5
NAMES = ("probe", "train", "eval", "notes", "sweep", "demo run")
SIZES: tuple[Json, ...] = (
    {"flavor": "a100-1"},
    {"flavor": "a100-1"},
    {"flavor": "a100-2"},
    {"flavor": "cpu-small"},
    {"pool": "t4-shared", "gpus": 0.25, "cpu": 1, "memory_mib": 1024},
    {"pool": "a100", "gpus": 1, "cpu": 2, "memory_mib": 2048, "disk_mib": 64},
)
HOSTILE_BODIES: tuple[Any, ...] = (
    {"env": {"NVIDIA_VISIBLE_DEVICES": "all"}},
    {"name": "../../etc/passwd"},
    {"name": "x" * 5000},
    {"image": "'; DROP TABLE workspaces_workspace; --"},
    {"pool": "a100", "gpus": 1e308, "cpu": 1, "memory_mib": 1024},
    {"env": {"A\0": "b"}},
    {"disk_mib": -1},
    {"tenant": "nobody's"},
    {"priority": 100},
)


@dataclass
class Person:
    name: str
    tenant: str
    api: Client
    dice: Random
    sockets: Sockets
    may_launch: bool = True
    manages_others: bool = False
    asked: list[Asked] = field(default_factory=list)
    mine: list[str] = field(default_factory=list)
    ssh_keys: list[str] = field(default_factory=list)
    booked: list[str] = field(default_factory=list)

    # --- asking

    def ask(
        self,
        verb: str,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        workspace: str = "",
        key: str = "",
        **about: Any,
    ) -> Asked:
        """Send and record a request: once, or with a key up to TRIES times until an answer comes."""
        request = Asked(
            self.name, verb, datetime.now(UTC), workspace, body or about.pop("meant", {}), key=key, **about
        )
        self.asked.append(request)
        for _ in range(TRIES if key else 1):
            try:
                status, answer = self.api(method, path, body, {"Idempotency-Key": key} if key else None)
            except NO_ANSWER:
                time.sleep(PATIENCE_SECONDS)
                continue
            if status == 503 and key:
                time.sleep(PATIENCE_SECONDS)
                continue
            request.status, request.answer, request.answered = status, answer, datetime.now(UTC)
            break
        return request

    def key(self) -> str:
        """Return an idempotency key for half of the requests, else an empty string."""
        return f"{self.name}-{self.dice.getrandbits(64):x}" if self.dice.random() < 0.5 else ""

    def ticket(self) -> str | None:
        """Return a ticket for a socket; None if Berth gives none."""
        try:
            status, answer = self.api("POST", "ws-tickets/")
        except NO_ANSWER:
            return None
        return str(answer["ticket"]) if status == 201 else None

    # --- wishes

    def launch(self) -> None:
        dice = self.dice
        body = {
            "tenant": self.tenant,
            "name": f"{dice.choice(NAMES)} {dice.randrange(100)}",
            "image": "jupyter",
            **dice.choice(SIZES),
        }
        if dice.random() < 0.4:
            body["max_runtime_minutes"] = 1
        self._keep(self.ask("launch", "POST", "workspaces/", body, key=self.key()))

    def _keep(self, made: Asked) -> None:
        if not made.is_accepted:
            return
        self.mine.append(made.answer["id"])
        if self.dice.random() < 0.5:
            self.sockets.listen(self.name, made.answer["id"], self.ticket, None)

    def launch_twice(self) -> None:
        """Launch with the same name twice at the same moment; only one may win."""
        name = f"twin {self.dice.getrandbits(40):x}"
        body = {"tenant": self.tenant, "name": name, "image": "jupyter", "flavor": "cpu-small"}

        def launch() -> None:
            self._keep(self.ask("launch", "POST", "workspaces/", body, rivals=name))

        at_once(launch, launch)

    def wish_much_at_once(self) -> None:
        """Act on one workspace from several windows: rename it repeatedly while it starts or stops."""
        if workspace := self._one_of_mine():
            verbs = self.dice.sample(["start", "stop", "restart"], 2)
            names = [[f"named {self.dice.getrandbits(40):x}" for _ in range(4)] for _ in range(3)]
            at_once(
                *(partial(self.act_on, workspace, verb) for verb in verbs),
                *(partial(self.rename_often, workspace, of_window) for of_window in names),
            )

    def act_on(self, workspace: str, verb: str) -> None:
        self.ask(verb, "POST", f"workspaces/{workspace}/{verb}/", workspace=workspace)

    def rename_often(self, workspace: str, names: list[str]) -> None:
        for name in names:
            self.ask("change", "PATCH", f"workspaces/{workspace}/", {"name": name}, workspace=workspace)

    def repeat_with_key(self) -> None:
        """Repeat a launch with its key; the first answer must come again."""
        key = f"{self.name}-again-{self.dice.getrandbits(64):x}"
        body = {"tenant": self.tenant, "name": key, "image": "jupyter", "flavor": "cpu-small"}
        self._keep(self.ask("launch", "POST", "workspaces/", body, key=key))
        self.ask("launch", "POST", "workspaces/", body, key=key)

    def clone(self) -> None:
        if workspace := self._one_of_mine():
            made = self.ask(
                "clone", "POST", f"workspaces/{workspace}/clone/", {}, workspace=workspace, key=self.key()
            )
            self._keep(made)

    def act(self, verb: str) -> Callable[[], None]:
        def do() -> None:
            if workspace := self._one_to_manage() if verb == "stop" else self._one_of_mine():
                path = f"workspaces/{workspace}/{verb}/"
                self.ask(verb, "POST", path, workspace=workspace, key=self.key())

        return do

    def extend(self) -> None:
        if workspace := self._one_of_mine():
            self.ask("extend", "POST", f"workspaces/{workspace}/extend/", {"minutes": 1}, workspace=workspace)

    def delete(self) -> None:
        if workspace := self._one_of_mine():
            with_files = self.dice.random() < 0.5
            path = f"workspaces/{workspace}/?delete_disk={str(with_files).lower()}"
            self.ask("delete", "DELETE", path, workspace=workspace, meant={"delete_disk": with_files})
            if self.dice.random() < 0.8:  # keep some, so that later requests go to deleted workspaces
                self.mine.remove(workspace)

    def rename(self) -> None:
        if workspace := self._one_of_mine():
            body = {"name": f"named {self.dice.getrandbits(40):x}"}
            self.ask("change", "PATCH", f"workspaces/{workspace}/", body, workspace=workspace)

    def resize(self) -> None:
        if workspace := self._one_of_mine():
            size = {k: v for k, v in self.dice.choice(SIZES).items() if k != "disk_mib"}
            self.ask("change", "PATCH", f"workspaces/{workspace}/", size, workspace=workspace)

    def change_lifetime(self) -> None:
        if workspace := self._one_of_mine():
            body = {"max_runtime_minutes": self.dice.choice([None, 1, 60])}
            self.ask("change", "PATCH", f"workspaces/{workspace}/", body, workspace=workspace)

    def add_key(self) -> None:
        body = {"name": f"laptop {len(self.ssh_keys)}", "public_key": public_key(self.dice)}
        made = self.ask("add key", "POST", "ssh-keys/", body, key=self.key())
        if made.is_accepted:
            self.ssh_keys.append(made.answer["id"])

    def remove_key(self) -> None:
        if self.ssh_keys:
            self.ask("remove key", "DELETE", f"ssh-keys/{self.ssh_keys.pop(0)}/")

    def book(self) -> None:
        """Book GPUs from a moment within the next 30 seconds, so that the booking begins within the day."""
        begin = datetime.now(UTC) + timedelta(seconds=self.dice.uniform(0, 30))
        body = {
            "tenant": self.tenant,
            "pool": "a100",
            "title": "a class",
            "from": begin.isoformat(),
            "to": (begin + timedelta(minutes=20)).isoformat(),
            "places": self.dice.randint(1, 2),
            "gpus_each": self.dice.choice([1, 1, 2]),
        }
        made = self.ask("book", "POST", "bookings/", body)
        if made.is_accepted:
            self.booked.append(made.answer["id"])

    def cancel_booking(self) -> None:
        if self.booked:
            booking = self.booked.pop(0)
            self.ask("cancel booking", "DELETE", f"bookings/{booking}/", meant={"booking": booking})

    def look(self) -> None:
        path = self.dice.choice(
            [
                "workspaces/",
                "workspaces/?limit=2",
                "workspaces/?phase=ready",
                "pools/",
                "quotas/",
                "bookings/",
                "budgets/",
                "usage/",
                "me/",
                "flavors/",
            ]
        )
        seen = self.ask("look", "GET", path)
        if seen.status == 200 and isinstance(seen.answer, dict) and (following := seen.answer.get("next")):
            self.ask("look", "GET", following)

    def listen_for_a_while(self) -> None:
        if workspace := self._one_of_mine():
            self.sockets.listen(self.name, workspace, self.ticket, self.dice.uniform(0.5, 5))

    def be_hostile(self) -> None:
        dice = self.dice
        decent = {"tenant": self.tenant, "name": "decent", "image": "jupyter", "flavor": "cpu-small"}
        match dice.randrange(4):
            case 0:
                self.ask("hostile", "POST", "workspaces/", {**decent, **dice.choice(HOSTILE_BODIES)})
            case 1:
                nobody = f"{dice.getrandbits(128):032x}"
                self.ask("hostile", dice.choice(["GET", "PATCH", "DELETE"]), f"workspaces/{nobody}/", {})
            case 2:
                self.ask("hostile", "GET", "workspaces/?cursor=%00%ff")
            case _:
                self.ask("hostile", "POST", "workspaces/", [decent])  # type: ignore[arg-type]

    def _one_of_mine(self) -> str:
        """Choose from the eight newest workspaces; return an empty string if there is none."""
        return self.dice.choice(self.mine[-8:]) if self.mine else ""

    def _one_to_manage(self) -> str:
        if self.manages_others and self.dice.random() < 0.3:
            found = self.ask("look", "GET", f"workspaces/?tenant={self.tenant}&limit=20")
            if found.status == 200 and found.answer["results"]:
                return str(self.dice.choice(found.answer["results"])["id"])
        return self._one_of_mine()

    # --- a day

    def habits(self) -> dict[Callable[[], None], int]:
        """Actions of this person, with their weights."""
        if not self.may_launch:
            return {self.look: 6, self.add_key: 1, self.be_hostile: 2, self.launch_refused: 1}
        bookings = {self.book: 8, self.cancel_booking: 5} if self.manages_others else {}
        return bookings | {
            self.launch: 14, self.act("start"): 8, self.act("stop"): 8, self.act("restart"): 8, self.delete: 8,
            self.extend: 4, self.rename: 3, self.resize: 4, self.change_lifetime: 3, self.clone: 3,
            self.add_key: 2, self.remove_key: 1, self.look: 8, self.listen_for_a_while: 3,
            self.launch_twice: 2, self.wish_much_at_once: 5, self.repeat_with_key: 2, self.be_hostile: 3,
        }  # fmt: skip

    def launch_refused(self) -> None:
        body = {"tenant": self.tenant, "name": "only looks", "image": "jupyter", "flavor": "cpu-small"}
        self.ask("hostile", "POST", "workspaces/", body)

    def live(self, until: float, pause_seconds: float) -> None:
        habits = self.habits()
        for do in self._drawn(habits):
            if time.monotonic() > until:
                return
            do()
            time.sleep(self.dice.expovariate(1 / pause_seconds))

    def _drawn(self, habits: dict[Callable[[], None], int]) -> Iterator[Callable[[], None]]:
        while True:
            yield self.dice.choices(list(habits), list(habits.values()))[0]


def at_once(*wishes: Callable[[], object]) -> None:
    threads = [threading.Thread(target=wish) for wish in wishes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def public_key(dice: Random) -> str:
    kind = b"ssh-ed25519"
    blob = len(kind).to_bytes(4) + kind + (32).to_bytes(4) + dice.randbytes(32)
    return f"ssh-ed25519 {base64.b64encode(blob).decode()}"
