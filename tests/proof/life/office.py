"""What the admin does on the admin's own pages, as a browser sends them: shares of tenants, pools in and out of use."""

from __future__ import annotations

import http.client
import http.cookiejar
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from random import Random

from tests.proof.life.records import Quota, Share

Fields = list[tuple[str, str]]
TOKEN = "csrfmiddlewaretoken"


class _Hidden(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.fields: Fields = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "input" and given.get("type") == "hidden":
            self.fields.append((str(given["name"]), given.get("value") or ""))


@dataclass
class Admin:
    """Gives and takes while the others live, and writes down what it gave."""

    address: str
    password: str
    quotas: Sequence[Quota]
    dice: Random
    told: list[str]
    shares: list[Share] = field(default_factory=list)

    def __post_init__(self) -> None:
        now = datetime.now(UTC)
        for quota in self.quotas:
            self._note(quota, quota.nominal_gpus, now, now)

    def live(self, until: float, pause_seconds: float) -> None:
        office: Office | None = None
        while time.monotonic() < until:
            try:
                office = office or Office(self.address, "admin", self.password)
                self._do_something(office)
            except (OSError, http.client.HTTPException):
                office = None  # signed in anew when Berth answers again
            time.sleep(self.dice.expovariate(1 / pause_seconds))

    def open_all(self) -> None:
        office = Office(self.address, "admin", self.password)
        for pool in {quota.pool_id for quota in self.quotas}:
            office.set_open(pool, is_open=True)

    def _do_something(self, office: Office) -> None:
        quota = self.dice.choice(self.quotas)
        if self.dice.random() < 0.4:
            is_open = self.dice.random() < 0.6
            self.told.append(f"pool {quota.pool} {'into' if is_open else 'out of'} use")
            office.set_open(quota.pool_id, is_open=is_open)
            return
        gpus, sent = self.dice.randint(1, 6), datetime.now(UTC)
        self.told.append(f"{quota.tenant} may use {gpus} GPUs of {quota.pool}")
        is_done = False
        try:
            is_done = office.set_share(quota.id, quota.tenant_id, quota.pool_id, gpus)
        finally:  # without an answer it may be so all the same
            self._note(quota, gpus, sent, datetime.now(UTC) if is_done else None)

    def _note(self, quota: Quota, gpus: int, sent: datetime, answered: datetime | None) -> None:
        units = gpus * quota.units_per_gpu
        self.shares.append(
            Share(tenant=quota.tenant, pool=quota.pool, units=units, sent=sent, answered=answered)
        )


class Office:
    """A browser that is signed in as an admin."""

    def __init__(self, address: str, username: str, password: str) -> None:
        self.address = address
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._open = urllib.request.build_opener(cookies).open
        self._token: Fields = [pair for pair in hidden(self._get("/sign-in/")) if pair[0] == TOKEN][:1]
        page = self._post("/sign-in/", [("username", username), ("password", password)])
        assert "sign-out" in page, page[-2000:]
        # Signing in gave it a new token.
        self._token = [pair for pair in hidden(page) if pair[0] == TOKEN][:1]

    def set_share(self, quota: str, tenant: str, pool: str, gpus: int) -> bool:
        """On the quota's own page; what lowering it does is confirmed. False: meanwhile it would do something else."""
        path = f"/admin/quotas/quota/{quota}/change/"
        fields = [
            ("tenant", tenant),
            ("pool", pool),
            ("nominal_gpus", str(gpus)),
            ("borrowing_limit_gpus", "0"),
        ]
        page = self._post(path, fields)
        if "lowering_seen" in page:
            page = self._post(path, [pair for pair in hidden(page) if pair[0] != TOKEN])
        return "lowering_seen" not in page

    def set_open(self, pool: str, *, is_open: bool) -> None:
        path = "/admin/quotas/pool/"
        page = self._post(path, [("action", "open" if is_open else "close"), ("_selected_action", pool)])
        self._post(path, [*(pair for pair in hidden(page) if pair[0] != TOKEN), ("confirmed", "yes")])

    def _get(self, path: str) -> str:
        with self._open(self.address + path, timeout=60) as answer:
            return str(answer.read().decode())

    def _post(self, path: str, fields: Fields) -> str:
        request = urllib.request.Request(
            self.address + path,
            data=urllib.parse.urlencode([*self._token, *fields]).encode(),
            headers={"Referer": self.address + path},
        )
        with self._open(request, timeout=60) as answer:
            return str(answer.read().decode())


def hidden(page: str) -> Fields:
    found = _Hidden()
    found.feed(page)
    return found.fields
