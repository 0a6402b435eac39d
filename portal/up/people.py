"""The demo people of a trial."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Person:
    username: str
    words: str
    is_staff: bool = False


PEOPLE = (
    Person("admin", "admin of the installation", is_staff=True),
    Person("alice", "owner of the tenant demo"),
    Person("bob", "member of demo"),
    Person("carol", "member of second"),
)
