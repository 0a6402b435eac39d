"""CSV answers as their lines."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync


def csv_of(answer: Any) -> list[str]:
    async def read() -> str:
        return b"".join([part async for part in answer.streaming_content]).decode()

    return async_to_sync(read)().splitlines()
