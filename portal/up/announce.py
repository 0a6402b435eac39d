"""Output for the person at the terminal: a line per part that starts, then the address and how to sign in."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from portal.up.people import PEOPLE
from portal.up.plan import Plan


def say(text: str) -> None:
    """Print at once, also into a pipe. Ignore errors: a full disk must not end anything."""
    with suppress(OSError):
        print(text, flush=True)


@contextmanager
def starting(what: str, words: str) -> Iterator[None]:
    """Print one line with the time that the part took, once it has started."""
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
