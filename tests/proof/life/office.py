"""Actions of the admin on the admin pages, as a browser sends them: shares, limits, budgets, pools out of use."""

from __future__ import annotations

import http.client
import http.cookiejar
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html.parser import HTMLParser
from math import inf
from random import Random

from tests.proof.life.records import (
    GPUS_OF_ONE,
    MINUTES,
    WORKSPACES,
    WORKSPACES_OF_ONE,
    Quota,
    Share,
    own_units_of,
    units_of,
)

Fields = list[tuple[str, str]]
TOKEN = "csrfmiddlewaretoken"
SHARE_OF = {
    "workspaces": WORKSPACES,
    "person_workspaces": WORKSPACES_OF_ONE,
    "person_gpus": GPUS_OF_ONE,
    "longest_runtime_minutes": MINUTES,
}
LIMITS: tuple[tuple[str, int | None], ...] = (
    ("workspaces", 4), ("workspaces", None), ("person_workspaces", 2), ("person_gpus", 2), ("person_gpus", 1),
    ("longest_runtime_minutes", 1), ("longest_runtime_minutes", 60),
)  # fmt: skip


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
    """The admin, who changes shares while the others live, and records each change."""

    address: str
    password: str
    quotas: Sequence[Quota]
    dice: Random
    told: list[str]
    shares: list[Share] = field(default_factory=list)

    def __post_init__(self) -> None:
        now = datetime.now(UTC)
        for quota in self.quotas:
            own = quota.nominal_gpus * quota.units_per_gpu
            borrowed = quota.borrowing_limit_gpus * quota.units_per_gpu
            self._note(quota, quota_shares(quota.pool, own, borrowed), now, now)
            self._note(quota, limit_shares({}), now, now)

    def live(self, until: float, pause_seconds: float) -> None:
        kinds = {self._close_or_open: 4, self._set_quota: 6, self._set_limit: 3, self._set_budget: 3}
        office: Office | None = None
        while time.monotonic() < until:
            try:
                office = office or Office(self.address, "admin", self.password)
                [kind] = self.dice.choices(list(kinds), list(kinds.values()))
                kind(office, self.dice.choice(self.quotas))
            except (OSError, http.client.HTTPException):
                office = None  # sign in again once Berth answers
            time.sleep(self.dice.expovariate(1 / pause_seconds))

    def open_all(self) -> None:
        """Open all pools and give all budgets enough hours, so that nothing stops for lack of them."""
        office = Office(self.address, "admin", self.password)
        for pool in {quota.pool_id for quota in self.quotas}:
            office.set_open(pool, is_open=True)
        for budget in {quota.budget_id for quota in self.quotas}:
            office.change(f"quotas/budget/{budget}", gpu_hours="1000", grace_minutes="0")

    def _close_or_open(self, office: Office, quota: Quota) -> None:
        is_open = self.dice.random() < 0.6
        self.told.append(f"pool {quota.pool} {'into' if is_open else 'out of'} use")
        office.set_open(quota.pool_id, is_open=is_open)

    def _set_quota(self, office: Office, quota: Quota) -> None:
        own, borrowed, weight = self.dice.randint(1, 2), self.dice.randint(0, 3), self.dice.randint(1, 3)
        self.told.append(
            f"{quota.tenant} has {own} GPUs of {quota.pool}, may borrow {borrowed}, weighs {weight}"
        )
        shares = quota_shares(quota.pool, own * quota.units_per_gpu, borrowed * quota.units_per_gpu)
        with self._noting(quota, shares) as done:
            done.append(
                office.change(
                    f"quotas/quota/{quota.id}",
                    tenant=quota.tenant_id,
                    pool=quota.pool_id,
                    nominal_gpus=str(own),
                    borrowing_limit_gpus=str(borrowed),
                    weight=str(weight),
                )
            )

    def _set_limit(self, office: Office, quota: Quota) -> None:
        """Set one limit of a tenant and clear the others."""
        name, most = self.dice.choice(LIMITS)
        self.told.append(f"{quota.tenant} may have {name} {most}")
        with self._noting(quota, limit_shares({name: most})) as done:
            done.append(
                office.change(
                    f"quotas/tenantlimit/{quota.limit_id}", tenant=quota.tenant_id, **{name: str(most or "")}
                )
            )

    def _set_budget(self, office: Office, quota: Quota) -> None:
        """Set so few GPU-hours that the day spends them, or enough for everything."""
        hours = self.dice.choice(["0.01", "0.02", "1000"])
        self.told.append(f"{quota.tenant} has {hours} GPU-hours")
        office.change(f"quotas/budget/{quota.budget_id}", gpu_hours=hours, grace_minutes="0")

    @contextmanager
    def _noting(self, quota: Quota, shares: Mapping[str, float]) -> Iterator[list[bool]]:
        """Record a change of shares, even without an answer: it may have taken effect."""
        sent, done = datetime.now(UTC), list[bool]()
        try:
            yield done
        finally:
            self._note(quota, shares, sent, datetime.now(UTC) if any(done) else None)

    def _note(
        self, quota: Quota, shares: Mapping[str, float], sent: datetime, answered: datetime | None
    ) -> None:
        self.shares += [
            Share(tenant=quota.tenant, of=of, most=most, sent=sent, answered=answered)
            for of, most in shares.items()
        ]


def quota_shares(pool: str, own: int, borrowed: int) -> dict[str, float]:
    return {units_of(pool): own + borrowed, own_units_of(pool): own}


def limit_shares(limit: Mapping[str, int | None]) -> dict[str, float]:
    """Return all limits by share; those not in `limit` are infinite."""
    return {of: limit.get(name) or inf for name, of in SHARE_OF.items()}


class Office:
    """A browser that is signed in as an admin."""

    def __init__(self, address: str, username: str, password: str) -> None:
        self.address = address
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._open = urllib.request.build_opener(cookies).open
        self._token: Fields = [pair for pair in hidden(self._get("/sign-in/")) if pair[0] == TOKEN][:1]
        page = self._post("/sign-in/", [("username", username), ("password", password)])
        assert "sign-out" in page, page[-2000:]
        # Signing in changes the CSRF token.
        self._token = [pair for pair in hidden(page) if pair[0] == TOKEN][:1]

    def change(self, what: str, **fields: str) -> bool:
        """Change a row on its page, and confirm a lowering. Return False if its effects changed meanwhile."""
        path = f"/admin/{what}/change/"
        kept = [pair for pair in hidden(self._get(path)) if pair[0] != TOKEN and pair[0] not in fields]
        page = self._post(path, [*kept, *fields.items()])
        if "lowering_seen" in page:
            page = self._post(path, [pair for pair in hidden(page) if pair[0] != TOKEN])
        assert "errornote" not in page, page
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
