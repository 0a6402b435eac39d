"""What the person at the terminal reads: a line per thing that starts, then where to go and how to get in."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from portal.up.people import PEOPLE
from portal.up.plan import Plan


def say(text: str) -> None:
    """At once, also into a pipe. Where that is a file on a full disk, nothing ends because of it."""
    with suppress(OSError):
        print(text, flush=True)


@contextmanager
def starting(what: str, words: str) -> Iterator[None]:
    """One line with the time it took, when it is there."""
    began = time.monotonic()
    yield
    say(f"  {what:<9} {words} ({time.monotonic() - began:.1f} s)")


def welcome(plan: Plan) -> str:
    people = "\n".join(f"    {person.username:<7} {person.words}" for person in PEOPLE)
    return f"""
Berth is ready:  {plan.address}

  Sign in as one of these, each with the password  {plan.settings["BERTH_DEMO_PASSWORD"]}
{people}

  SSH through Berth:  ssh -J alice@{plan.jump_public_address} jovyan@<a workspace's name>
  A token for scripts:  .venv/bin/python manage.py issue_token alice --scopes read workspaces
  Logs:  {plan.state.logs}
  Mail, as files:  {plan.state.mail}
  Ctrl-C stops everything and loses nothing.
"""
