"""Examples of class launches."""

from __future__ import annotations

import json
import tarfile
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import BytesIO
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from django.utils import timezone

from storage.mounts import homes
from tests.portal.parity.bodies import CLASS
from tests.portal.parity.book import example
from tests.portal.parity.scene import Scene
from tests.shared.class_rows import make_class
from tests.shared.workspace_rows import make_workspace
from workspaces.models import Workspace

ONE = "class-launches/<uuid:id>/"
VERB = f"{ONE}<str:verb>/"


@example("POST class-launches/", "class-launches/")
def a_class(scene: Scene) -> None:
    made = scene.alice.api("POST class-launches/", CLASS)
    assert phases(scene, f"class-launches/{made['id']}/") == {"bob": "waiting", "nobody": "refused"}


@example("POST class-launches/", f"{ONE}people/")
def more_people_of_a_class(scene: Scene) -> None:
    made = scene.alice.api("POST class-launches/", CLASS)
    scene.alice.api("POST class-launches/", {"tenant": "demo", "name": CLASS["name"], "people": ["alice"]})
    assert set(phases(scene, f"class-launches/{made['id']}/")) == {"alice", "bob", "nobody"}


@example(f"POST {ONE}stop/", VERB)
def a_class_is_stopped(scene: Scene) -> None:
    there = running(scene)
    scene.alice.api(f"POST {there}stop/")
    assert scene.alice.get(there)["stopped_at"]
    assert phases(scene, there)["bob"] == "stopping"


@example(f"POST {ONE}extend/", VERB)
def a_class_may_run_longer(scene: Scene) -> None:
    there = running(scene, stops_at=timezone.now() + timedelta(minutes=5), max_runtime_minutes=60)
    [before, *_] = scene.alice.get(there)["people"]
    scene.alice.api(f"POST {there}extend/", {"minutes": 90})
    [after, *_] = scene.alice.get(there)["people"]
    assert after["stops_at"] > before["stops_at"]


@example(f"POST {ONE}collect/", f"{ONE}collect/")
def a_folder_of_all_is_collected(scene: Scene) -> None:
    bobs = make_workspace(scene.cast, scene.cast.bob)
    homes.add_home(bobs.owner, bobs.tenant, scene.cast.cluster, bobs.pk, bobs.name)
    there = f"class-launches/{make_class(scene.cast, bobs).pk}/"
    with HTTPServer(("127.0.0.1", 0), Jupyter) as jupyter:
        Thread(target=jupyter.serve_forever, daemon=True).start()
        Workspace.objects.update(host="127.0.0.1", jupyter_port=jupyter.server_port)
        archive = scene.alice.download(f"POST {there}collect/", {"folder": "hand-in"})
        jupyter.shutdown()
    with tarfile.open(fileobj=BytesIO(archive)) as read:
        found = read.extractfile("bob/a.txt")
        assert found is not None and found.read() == FILE


FILE = b"It was the cable."


class Jupyter(BaseHTTPRequestHandler):
    """Jupyter of a person who handed in one file."""

    def do_GET(self) -> None:
        listing = json.dumps({"content": [{"name": "a.txt", "type": "file"}]}).encode()
        body = {"/api/contents/hand-in": listing, "/files/hand-in/a.txt": FILE}[urlsplit(self.path).path]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@example(f"DELETE {ONE}", VERB)
def a_class_is_deleted(scene: Scene) -> None:
    scene.alice.api(f"DELETE {running(scene)}")
    assert scene.alice.list("class-launches/") == []


def running(scene: Scene, **workspace: Any) -> str:
    """Make a class with a workspace of bob's that runs. Return its address."""
    row = make_class(scene.cast, make_workspace(scene.cast, scene.cast.bob, **workspace))
    return f"class-launches/{row.pk}/"


def phases(scene: Scene, there: str) -> dict[str, str]:
    return {one["person"]: one["phase"] for one in scene.alice.get(there)["people"]}
