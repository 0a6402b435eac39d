"""Addresses of Berth with their tokens, in a file that its user alone can read."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import typer

from berth import Client
from berth.cli.exits import Ended, Exit, usage

FILE = "sites.json"


@dataclass
class Sites:
    """What the file holds. `current`: address that is used if none is named."""

    current: str = ""
    tokens: dict[str, str] = field(default_factory=dict)


class Chosen:
    """Address that the command line or BERTH_URL names for this run."""

    url = ""


def path() -> Path:
    return Path(typer.get_app_dir("berth")) / FILE


def read() -> Sites:
    try:
        found = json.loads(path().read_text())
        return Sites(str(found["current"]), {str(url): str(token) for url, token in found["tokens"].items()})
    except FileNotFoundError:
        return Sites()
    except (ValueError, LookupError, AttributeError, TypeError):
        raise Ended(
            Exit.ERROR,
            "unreadable",
            f"{path()} is not what berth wrote there.",
            "Delete it, and sign in again.",
        ) from None


def write(sites: Sites) -> None:
    """Replace the file. It is never there with other rights than 0600."""
    save(path(), json.dumps({"current": sites.current, "tokens": sites.tokens}, indent=2) + "\n")


def save(target: Path, text: str) -> None:
    """Write a file that its user alone can read, whole or not at all."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")  # with 0600
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def plain(url: str) -> str:
    """Return an address without what is behind the host, as a browser's line may have it."""
    url = url if "://" in url else f"https://{url}"
    return "/".join(url.split("/")[:3])


def address() -> str:
    url = Chosen.url or os.environ.get("BERTH_URL", "") or read().current
    if not url:
        raise Ended(
            Exit.NOT_SIGNED_IN,
            "not_signed_in",
            "No Berth is known here yet.",
            "Sign in: berth login https://ADDRESS",
        )
    return plain(url)


def connect() -> Client:
    """Return a client for the chosen address. Raise Ended without a token."""
    url = address()
    token = os.environ.get("BERTH_TOKEN", "").strip() or read().tokens.get(url)
    if not token:
        raise Ended(
            Exit.NOT_SIGNED_IN,
            "not_signed_in",
            f"You are not signed in to {url}.",
            f"Sign in: berth login {url}",
        )
    return client(url, token)


def client(url: str, token: str = "") -> Client:
    try:
        return Client(url, token)
    except ValueError as problem:
        raise usage(str(problem)) from None
    except ImportError:  # httpx raises it for a SOCKS proxy of the environment
        raise usage(
            "A SOCKS proxy is set, and this installation has no support for it.",
            "Install it: pipx inject berth-cli socksio",
        ) from None
