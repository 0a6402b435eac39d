"""Messages that people met on real clusters (real_messages/), and what was the matter: they judge clusters.causes.

Each was taken in November 2026 from the public thread it links to, word for word as the program printed it but for
names of people and machines ("somebody", zeros); of a log line only its message, and where a thread itself cuts the
message off, it ends there. Left out: time stamps, further lines, and wordings of the same trouble beyond a few. They
were collected before the rules that are to know them.

real_messages/blind/ is an examination: a hundred more, collected and labelled from the list of causes alone by somebody
who had read no rule, and committed before anything read them. What came out of that first reading stands in
docs/operator/clusters.md and is never changed; since then rules may be made for them as well. real_messages/second/
was collected after that by the same person, who knew the rules by then, again committed before they were read.
real_messages/third/ is another examination like the first, by somebody who had read neither rules nor labels: of 140
messages from threads about what people with such workspaces meet, the 94 that were not yet here in almost these words.
real_messages/fourth/ is to it what the second is to the first.
Where a cause was made later for what had none, its messages are labelled by it now.

    text, where   what was printed, and where people saw it
    means, who    the cause, as the thread tells; who can end it: the person (you), an admin, or nobody has to
    code          the cause that says so, or unknown if none does; also_true: others that are true as well, though they
                  say less, or another half
    held_out      one in three: a rule is never written with a look at it, so that it tells how rules do on what is new

`python -m tests.clusters.judge_rules` says how many are recognised, and which of the others a rule may be made for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from clusters.explain import UNKNOWN, diagnose

Verdict = Literal["right", "vague", "misread", "unknown"]
# Causes that say which step failed, and not why: true of much, help for little.
VAGUE = {
    "address_failed",
    "image_pull_backoff",
    "start_failed",
    "volume_mount_failed",
    "volume_not_provisioned",
}


@dataclass(frozen=True)
class Message:
    file: str
    source: str
    text: str
    where: str
    thread: str
    means: str
    who: Literal["you", "admin", "nobody"]
    code: str
    also_true: tuple[str, ...] = ()
    held_out: bool = False
    folder: str = ""

    @property
    def part(self) -> str:
        return self.folder or ("held out" if self.held_out else "open")

    @property
    def read_as(self) -> str:
        return diagnose(self.source, self.text).code

    @property
    def verdict(self) -> Verdict:
        diagnosis = diagnose(self.source, self.text)
        if not diagnosis.known:
            return "right" if self.code == UNKNOWN else "unknown"
        if diagnosis.code in (self.code, *self.also_true):
            return "right"
        return "vague" if diagnosis.code in VAGUE else "misread"


def real_messages() -> list[Message]:
    return list(_read())


def _read() -> Iterator[Message]:
    folder = Path(__file__).with_name("real_messages")
    for path in sorted(folder.rglob("*.yaml")):
        content: dict[str, Any] = yaml.safe_load(path.read_text())
        for row in content["messages"]:
            yield Message(
                file=str(path.relative_to(folder).with_suffix("")),
                source=content["source"],
                folder=path.parent.name if path.parent != folder else "",
                **{**row, "also_true": tuple(row.get("also_true", ()))},
            )
