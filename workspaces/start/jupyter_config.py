"""Configuration of a workspace's Jupyter, for jupyter-lab --config. Command line and log never hold the tokens."""

from __future__ import annotations

import gc
import hashlib
import hmac
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from jupyter_server.auth.identity import IdentityProvider, User
from tornado.ioloop import PeriodicCallback
from tornado.websocket import WebSocketHandler

c = get_config()  # type: ignore[name-defined]  # noqa: F821
SECRET = Path(__file__).parent.parent / "secret"
REREAD_SECONDS = 2
POLICY_VIOLATION = 1008  # RFC 6455, 7.4.1

# The shell started Jupyter in the background, where Ctrl-C is ignored; kernels and terminals would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


def secret(name: str) -> str:
    """Return a value of the mounted Secret, which the kubelet renews within about a minute of a change."""
    return (SECRET / name).read_text().strip()


def cookie_secret(token: str) -> bytes:
    return hashlib.sha256(b"cookies of " + token.encode()).digest()


class WorkspaceIdentity(IdentityProvider):  # type: ignore[misc]
    """Sign-in by Berth's gateway, by the token of scripts, or by a ticket made from that token, for one use.

    When the token is replaced, cookies and open websockets that came by the old one end. Kernels go on.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.used: dict[str, int] = {}
        self.watch = PeriodicCallback(self.renew, REREAD_SECONDS * 1000)
        self.watch.start()

    def renew(self) -> None:
        """Take up a new token."""
        token = secret("jupyter-token")
        if token == str(self.token):
            return
        self.token: str = token
        self.parent.web_app.settings["cookie_secret"] = cookie_secret(token)
        for handler in [one for one in gc.get_objects() if isinstance(one, WebSocketHandler)]:
            if not same(self.get_token(handler) or "", secret("gateway-token")):
                handler.close(POLICY_VIOLATION, "The sign-in ended. Open the workspace from Berth again.")

    def get_user_token(self, handler: Any) -> User | None:
        given = self.get_token(handler) or ""
        self.renew()
        known = same(given, self.token) or same(given, secret("gateway-token")) or self.takes_ticket(given)
        return self.generate_anonymous_user(handler) if known else None

    def takes_ticket(self, given: str) -> bool:
        """Return True if the ticket `<end>.<nonce>.<HMAC>` is right, in time and new."""
        what, _dot, proof = given.rpartition(".")
        end, now = what.partition(".")[0], time.time()
        if not same(proof, hmac.new(self.token.encode(), what.encode(), "sha256").hexdigest()):
            return False
        self.used = {ticket: until for ticket, until in self.used.items() if until > now}
        if int(end) < now or what in self.used:
            return False
        self.used[what] = int(end)
        return True

    def process_login_form(self, handler: Any) -> User | None:
        typed = handler.get_argument("password", default="")
        return self.generate_anonymous_user(handler) if same(typed, self.token) else None

    def generate_anonymous_user(self, handler: Any) -> User:
        """Return the one person of this server."""
        name = os.environ["USER"]
        return User(username=name, name=name, display_name=name, initials=name[:1].upper())


def same(given: str, known: str) -> bool:
    """Compare two secrets. Nothing is the same as an empty one."""
    return given != "" and hmac.compare_digest(given.encode(), known.encode())


if not secret("jupyter-token"):
    sys.exit("workspace: the Jupyter token is empty, and an empty token would let everybody in")
c.ServerApp.identity_provider_class = WorkspaceIdentity
c.IdentityProvider.token = secret("jupyter-token")
# Cookies end with the token that they came by.
c.ServerApp.cookie_secret = cookie_secret(secret("jupyter-token"))

c.ServerApp.ip = os.environ.get("POD_IP", "0.0.0.0")  # noqa: S104 (the container's own network)
c.ServerApp.port = 8888
# Jupyter is reached by many names: an address of its own, a node's port, the portal's gateway. The token guards all.
c.ServerApp.allow_remote_access = True
c.ServerApp.port_retries = 0
c.ServerApp.root_dir = os.environ["HOME"]
c.ServerApp.open_browser = False
c.ServerApp.quit_button = False
# Last, so that it hides no module of the image.
sys.path.append(str(Path(__file__).parent))
c.ServerApp.extra_services = ["berth_status", "berth_apps", "berth_doors"]


def our_page(handler: Any, page: dict[str, Any]) -> dict[str, Any]:
    """Name the browser's tab after the workspace, as the cookie says that Berth set when it handed the browser over.

    Disable the question about news on the first visit, too, and the request to the internet that it causes.
    """
    name = unquote(handler.get_cookie("berth_name", ""))
    if re.fullmatch(r"[A-Za-z0-9._ -]{1,63}", name):
        page["appName"] = name
    page["disabledExtensions"] = [*page["disabledExtensions"], "@jupyterlab/apputils-extension:announcements"]
    return page


c.ServerApp.tornado_settings = {
    "headers": {"Referrer-Policy": "no-referrer"},
    "page_config_hook": our_page,
}
# No login shell: /etc/profile would set another PATH than kernels and SSH sessions have.
c.ServerApp.terminado_settings = {"shell_command": [os.environ["SHELL"]]}
c.Application.log_level = "WARN"
# A stop shall take two seconds, not the five that a busy kernel is given by default.
c.KernelManager.shutdown_wait_time = 0.8
# Sockets in a folder that only this user may enter: who can reach a TCP port could read what kernels print.
c.KernelManager.transport = "ipc"

# Otherwise each start asks npm, if the image has it, for the folder of language servers: half a second.
c.LanguageServerManager.node_roots = [os.environ["HOME"]]

# If this Python is a virtual environment, kernels run the layer over it that is in the home (python_layer.py).
if sys.prefix != sys.base_prefix and "VIRTUAL_ENV" in os.environ:
    sys.executable = str(Path(os.environ["VIRTUAL_ENV"]) / "bin" / "python")
