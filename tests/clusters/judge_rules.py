"""Print how many of the real messages are recognised, per file, and list the misses that are not held out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup()

from tests.clusters.judged import EXAMINATIONS, Message, real_messages  # noqa: E402 -- only after setup


def share(messages: Iterable[Message]) -> str:
    verdicts = Counter(message.verdict for message in messages)
    return (
        f"{verdicts['right']} of {verdicts.total()} right ({verdicts['right'] / verdicts.total():.0%}),"
        f" {verdicts['vague']} vague, {verdicts['misread']} misread, {verdicts['unknown']} unknown"
    )


def main() -> None:
    messages = real_messages()
    for file in sorted({message.file for message in messages}):
        print(f"{file:18} {share(message for message in messages if message.file == file)}")
    for part in ("open", "held out", *EXAMINATIONS):
        print(f"{part:18} {share(message for message in messages if message.part == part)}")
    for message in sorted(messages, key=lambda message: (message.verdict, message.code)):
        if message.verdict != "right" and message.part != "held out":
            print(f"\n{message.verdict}: {message.code}, read as {message.read_as}")
            print(f"  {message.means}\n  {message.text[:400]}")


if __name__ == "__main__":
    main()
