"""Configuration of a workspace's Jupyter, for jupyter-lab --config. Command line and log never hold the token."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from pathlib import Path
from typing import Any

c = get_config()  # type: ignore[name-defined]  # noqa: F821

# The shell started Jupyter in the background, where Ctrl-C is ignored; kernels and terminals would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

token = (Path(__file__).parent.parent / "secret" / "jupyter-token").read_text().strip()
if not token:
    sys.exit("workspace: the Jupyter token is empty, and an empty token would let everybody in")
c.IdentityProvider.token = token
# The browser that opened the link stays signed in over stop and start.
c.ServerApp.cookie_secret = hashlib.sha256(b"cookies of " + token.encode()).digest()

c.ServerApp.ip = os.environ.get("POD_IP", "0.0.0.0")  # noqa: S104 (the container's own network)
c.ServerApp.port = 8888
# Jupyter is reached by many names: an address of its own, a node's port, the portal's gateway. The token guards all.
c.ServerApp.allow_remote_access = True
c.ServerApp.port_retries = 0
c.ServerApp.root_dir = os.environ["HOME"]
c.ServerApp.open_browser = False
c.ServerApp.quit_button = False


def without_news(handler: object, page: dict[str, Any]) -> dict[str, Any]:
    """Disable the question about news on the first visit, and the request to the internet that it causes."""
    page["disabledExtensions"] = [*page["disabledExtensions"], "@jupyterlab/apputils-extension:announcements"]
    return page


c.ServerApp.tornado_settings = {
    "headers": {"Referrer-Policy": "no-referrer"},
    "page_config_hook": without_news,
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
