"""A web process on the tests' database, and a browser that is signed in to it. Needs no cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client, override_settings
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect

from accounts.models import User
from tests.e2e.stack import until
from tests.shared.ports import free_port

CHROMIUM = "/usr/bin/chromium"
PATIENCE_MS = 60_000  # playwright's default of five seconds is too short on a busy machine


@contextmanager
def web_process(folder: Path) -> Iterator[str]:
    """Run Uvicorn as `make up` does, on the test database; yield its address."""
    with override_settings(STATIC_ROOT=folder):
        call_command("collectstatic", interactive=False, verbosity=0)
    port = free_port()
    environ = os.environ | {
        "DATABASE_URL": database_url(),
        "BERTH_ROLE": "web",
        "BERTH_STATIC_ROOT": str(folder),
        "BERTH_BASE_URL": f"http://127.0.0.1:{port}",
        "DJANGO_SETTINGS_MODULE": "portal.settings",
    }
    options = f"--port {port} --lifespan off --log-level warning".split()
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "portal.asgi:application", *options], env=environ
    )
    try:
        until("the web process", lambda: _answers(f"http://127.0.0.1:{port}/healthz"), 200)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def database_url() -> str:
    """URL of the database that pytest-django made."""
    server, _slash, _name = os.environ["DATABASE_URL"].rpartition("/")
    return f"{server}/{connection.settings_dict['NAME']}"


def _answers(url: str) -> bool:
    try:
        return bool(urlopen(url, timeout=2).status == 200)
    except OSError:
        return False


def chromium(playwright: Playwright) -> Browser:
    expect.set_options(timeout=PATIENCE_MS)
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def signed_in(browser: Browser, address: str, user: User | None, **options: object) -> BrowserContext:
    """Open a browser window with `user` signed in already, or with nobody signed in."""
    context = browser.new_context(base_url=address, **options)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    if user is not None:
        client = Client()
        client.force_login(user)
        session = client.cookies[settings.SESSION_COOKIE_NAME].value
        context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": address}])
    return context


@contextmanager
def opened(browser: Browser, address: str, user: User | None, path: str, **options: object) -> Iterator[Page]:
    """Open a page in a window of its own, with `user` signed in."""
    with signed_in(browser, address, user, **options) as context:
        page = context.new_page()
        page.goto(path)
        yield page
