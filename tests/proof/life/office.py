"""What the admin does on the admin's own pages, as a browser sends them: shares of tenants, pools in and out of use."""

from __future__ import annotations

import http.cookiejar
import urllib.parse
import urllib.request
from html.parser import HTMLParser

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

    def set_share(self, quota: str, tenant: str, pool: str, gpus: int) -> None:
        """On the quota's own page; what lowering it does is confirmed."""
        path = f"/admin/quotas/quota/{quota}/change/"
        fields = [
            ("tenant", tenant),
            ("pool", pool),
            ("nominal_gpus", str(gpus)),
            ("borrowing_limit_gpus", "0"),
        ]
        page = self._post(path, fields)
        if "lowering_seen" in page:
            self._post(path, [pair for pair in hidden(page) if pair[0] != TOKEN])

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
