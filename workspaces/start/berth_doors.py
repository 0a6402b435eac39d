"""Pages that open JupyterLab with a terminal or with the list of files, for the doors on the workspace's page.

JupyterLab has no address for either. So this writes a layout of JupyterLab that has it, and leads there.
"""

from __future__ import annotations

import json
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

NAME = "1"  # of the terminal: it is opened again if it runs
TERMINAL = f"terminal:{NAME}"
SHOWN = {
    "main": {
        "dock": {"type": "tab-area", "currentIndex": 0, "widgets": [TERMINAL]},
        "current": TERMINAL,
    }
}
BROWSER = {"left": {"collapsed": False, "current": "filebrowser", "widgets": ["filebrowser"]}}
LAYOUTS: dict[str, dict[str, Any]] = {
    "terminal": {"layout-restorer:data": SHOWN, TERMINAL: {"data": {"name": NAME}}},
    "files": {"layout-restorer:data": BROWSER},
}


class Door(JupyterHandler):  # type: ignore[misc]
    @web.authenticated  # type: ignore[untyped-decorator]
    def get(self, name: str) -> None:
        try:
            from jupyterlab.commands import get_workspaces_dir
            from jupyterlab_server.workspaces_handler import WorkspacesManager
        except ImportError:  # another page than JupyterLab
            self.redirect(self.base_url)
            return
        layout = {"data": LAYOUTS[name], "metadata": {"id": name}}
        WorkspacesManager(get_workspaces_dir()).save(name, json.dumps(layout))
        self.redirect(url_path_join(self.base_url, "lab/workspaces", name))


default_handlers = [(r"/berth/(terminal|files)", Door)]
