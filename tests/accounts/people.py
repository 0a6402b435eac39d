"""People of the tests, without a cluster."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.dispatch import Signal

from accounts.access import Actor
from accounts.models import Tenant, User
from tests import cast


@contextmanager
def heard(signal: Signal) -> Iterator[list[str]]:
    """Names of the people that the signal was sent for, in order."""
    names: list[str] = []

    def hear(users: set[User], **_: object) -> None:
        names.extend(user.username for user in users)

    signal.connect(hear)
    try:
        yield names
    finally:
        signal.disconnect(hear)


@dataclass(frozen=True)
class People:
    demo: Tenant
    second: Tenant
    alice: Actor
    bob: Actor
    victor: Actor
    carol: Actor
    admin: Actor


def make_people() -> People:
    """alice owns demo, bob is a member, victor a viewer; carol is of second; admin is staff."""
    (demo, second), people = cast.make_people()
    return People(demo, second, *map(Actor, people))
