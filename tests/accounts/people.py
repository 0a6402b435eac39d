"""People of the tests, without a cluster."""

from dataclasses import dataclass

from accounts.access import Actor
from accounts.models import Tenant
from tests import cast


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
