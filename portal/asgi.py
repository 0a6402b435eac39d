"""The web process: HTTP by Django, websockets by Channels behind an Origin check, workspaces by their own gateway."""

import gc
import os
import sys

import django
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup(set_prefix=False)  # loads the apps: what follows imports models

from portal import urls  # noqa: E402, F401 - all pages, before the first is asked for
from portal.lifespan import Beating  # noqa: E402
from portal.origin import OwnOrigin  # noqa: E402
from portal.routing import websocket_urlpatterns  # noqa: E402
from portal.web.agents import Agents  # noqa: E402
from portal.web.body_limit import LimitedBody  # noqa: E402
from portal.web.handler import InOneTurn  # noqa: E402
from storage.files.door import FilesDoor  # noqa: E402
from workspaces.gateway.door import Gateway  # noqa: E402

application = Beating(
    Gateway(
        ProtocolTypeRouter(
            {
                "http": FilesDoor(LimitedBody(Agents(InOneTurn()))),
                "websocket": OwnOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns))),
            }
        )
    )
)
# Loaded objects stay. Without the freeze, a full garbage collection would scan them all during an answer.
gc.collect()
gc.freeze()
# A thread that computes yields after this time, not Python's 5 ms: a page waits so long after each of its queries.
sys.setswitchinterval(0.001)
