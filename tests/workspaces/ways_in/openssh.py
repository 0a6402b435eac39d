"""Debian's OpenSSH programs, as a person would call them."""

from __future__ import annotations

import asyncio


async def says(*words: str, given: bytes = b"") -> str:
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(given), 30)
    assert process.returncode == 0, err.decode()
    return out.decode()
