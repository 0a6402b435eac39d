"""Messages that people met on real clusters (real_messages/), and their causes: they judge clusters.causes.

Each was taken in November 2026 from the public thread that it links to, word for word as the program printed it,
except names of people and machines ("somebody", zeros). Of a log line only the message is kept. If a thread cuts the
message off, it ends there. Left out: time stamps, further lines, and wordings of the same problem beyond a few. All
were collected before the rules that are to recognise them.

real_messages/blind/ is an examination: a hundred more messages, collected and labelled from the list of causes alone
by somebody who had read no rule, and committed before any rule was run on them. The result of that first run is in
docs/performance.md and is never changed; since then rules may be written for these messages as well.
real_messages/second/ was collected later by the same person, who knew the rules by then, and also committed before
any rule was run on it. real_messages/third/ is another examination like the first, by somebody who had read neither
rules nor labels: of 140 messages from threads about problems of people with such workspaces, the 94 that were not yet
here in almost the same words. real_messages/fourth/ relates to the third as the second does to the first.
real_messages/fifth/ is a third examination, by somebody who had read no rule: 42 messages, ten of which reach people
without passing the cluster (ways.yaml), as those of SSH, browsers and proxies do. They were committed before any rule
was touched; the codes of ways.yaml and of HAMi's scheduler did not exist yet. real_messages/sixth/ relates to the fifth
as the second does to the first. real_messages/seventh/ is a fourth examination, by somebody who had read no rule: 40
messages from threads that were not here yet, with what an admin would say written down before the list of causes was
read, and committed before any rule was touched. real_messages/eighth/ is its second half: 51 messages, found with
searches that were written down before the first rule was read (the first message of a new thread that each of them
shows), and committed before rules were widened again. real_messages/ninth/ has the 12 new ones of the last of these
searches, which were made after that. real_messages/tenth/ is a fifth examination, by somebody who had read no rule: of
89 messages, each with what an admin would say of it, the 40 that were not yet here in almost the same words (7 of them
were taken from the same searches after the others had been compared). They were labelled from the list of causes alone
and committed before any rule was run on them.
If a cause was added later for messages that had none, they are labelled with it now.

    text, where   the printed text, and where people saw it
    means, who    the cause according to the thread; who can fix it: the person (you), an admin, or nobody has to
    code          the right cause, or unknown if there is none; also_true: other causes that are true as well, though
                  they say less, or another half
    held_out      one message in three: no rule is written with a look at it, so that it shows how rules do on new ones

`python -m tests.clusters.judge_rules` prints how many are recognised, and the misses that rules may be written for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from clusters.explain import UNKNOWN, diagnose

# Each was collected before any rule was written for it.
EXAMINATIONS = ("blind", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
Verdict = Literal["right", "vague", "misread", "unknown"]
# Causes that say which step failed, but not why. They are often true and seldom help.
VAGUE = {
    "address_failed",
    "image_pull_backoff",
    "start_failed",
    "volume_failed",
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
