"""Sign-in: by a code that is confirmed in the browser, or with a token from standard input."""

from __future__ import annotations

import platform
import re
import sys
import time
import webbrowser
from typing import Annotated, Any

import typer

from berth import BerthError, Client, Refused, Unreachable
from berth.api import calls
from berth.api.shapes import NewDeviceCode
from berth.cli import output, sites
from berth.cli.exits import Ended, Exit, usage
from berth.cli.output import Json

ENCRYPTED = re.compile(r"https://|http://(localhost|127\.[\d.]+|\[::1\])(:\d+)?$")


def login(
    url: Annotated[str, typer.Argument(help="Address of Berth; default: the last one.")] = "",
    with_token: Annotated[
        bool, typer.Option("--with-token", help="Read a token from standard input.")
    ] = False,
    admin: Annotated[
        bool, typer.Option("--admin", help="Also with the rights of an admin, if you are one.")
    ] = False,
    browser: Annotated[bool, typer.Option(help="Open the browser of this machine.")] = True,
    as_json: Json = False,
) -> None:
    """Sign in: confirm a code in your browser, on this machine or another, or give a token of your profile."""
    sites.Chosen.url = url or sites.Chosen.url
    address = sites.address()
    if not ENCRYPTED.match(address):
        output.say(f"Careful: {address} is not encrypted. Others on the network can read your token.")
    if with_token:
        token = sys.stdin.readline().strip()
        if not token:
            raise usage("There was no token on standard input.")
    else:
        with sites.client(address) as berth:
            token = by_code(berth, is_admin=admin, opens_browser=browser)
    with sites.client(address, token) as berth:
        me: Any = berth.send(calls.me_retrieve())
    if not isinstance(me, dict) or "username" not in me:
        raise usage(f"Not a Berth address: {address} answers something else.")
    known = sites.read()
    sites.write(sites.Sites(address, {**known.tokens, address: token}))
    output.show({"url": address, **me}, f"Signed in to {address} as {me['username']}.")


def by_code(berth: Client, *, is_admin: bool, opens_browser: bool) -> str:
    """Return a token, once a person has confirmed the code."""
    name = f"berth on {platform.node() or 'a terminal'}"[:80]
    body: NewDeviceCode = {"name": name}
    if is_admin:
        body["scopes"] = ["read", "workspaces", "jobs", "volumes", "admin"]
    begun = berth.send(calls.device_code_create(body))
    output.say(f"Your code: {begun['user_code']}")
    output.say(f"Confirm it at {begun['verification_uri_complete']}")
    if opens_browser:
        webbrowser.open(begun["verification_uri_complete"])
    deadline = time.monotonic() + begun["expires_in"]
    while True:
        time.sleep(begun["interval"])
        try:
            return berth.send(calls.device_token_create({"device_code": begun["device_code"]}))["token"]
        except Refused as refused:
            if refused.code == "expired_token":
                raise Ended(Exit.TIMED_OUT, refused.code, refused.message, refused.hint) from None
            if refused.code not in ("authorization_pending", "too_often"):
                raise
        except Unreachable:
            if (
                time.monotonic() > deadline
            ):  # until then Berth may come back: the code lasts longer than a restart
                raise


def logout(as_json: Json = False) -> None:
    """Forget the token of this address, and revoke it."""
    address, known = sites.address(), sites.read()
    token = known.tokens.pop(address, None)
    sites.write(known)  # first: Berth may not be there any more
    if token:
        revoke(address, token)
    output.show({"url": address}, f"Signed out of {address}.")


def revoke(address: str, token: str) -> None:
    """Revoke a token, if it may do so: one that only reads has to be revoked in the profile."""
    try:
        with sites.client(address, token) as berth:
            for one in berth.rows(calls.tokens_list(prefix=token.split("_")[1])):
                berth.send(calls.tokens_destroy(one["id"]))
    except (BerthError, IndexError):
        output.say(f"The token could not be revoked here. Revoke it in your profile: {address}/profile/")


def whoami(as_json: Json = False) -> None:
    """Say who is signed in, and where."""
    with sites.connect() as berth:
        me = berth.send(calls.me_retrieve())
    tenants = ", ".join(f"{one['slug']} ({one['role']})" for one in me["tenants"])
    output.show(
        {"url": sites.address(), **me}, f"{me['username']} at {sites.address()}: {tenants or 'no team'}"
    )
