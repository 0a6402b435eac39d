"""Build Berth's images on bases that are named by digest, so that what was looked at is what runs.

`lock` asks the registries for the digests of the tags in the Dockerfiles, and writes bases.lock: look at what changed,
and commit it. `build [NAME …]` builds all images, or the named ones, on the bases of bases.lock and no others. A
Dockerfile has no digest itself: by hand, `docker build` fails without `--build-arg …_DIGEST=sha256:…`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
LOCK = HERE / "bases.lock"
HEADER = "# Base images of deploy/images/*/Dockerfile. Written by `make bases`.\n"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
BASE = re.compile(r"^ARG (\w+)_IMAGE=(\S+)$", re.MULTILINE)


class Refused(Exception):
    """Refusal to build or to write; its text says why."""


def bases_of(dockerfile: Path) -> dict[str, str]:
    """Return the tags that the Dockerfile builds on, by the name of their build argument."""
    return dict(BASE.findall(dockerfile.read_text()))


def dockerfiles() -> dict[str, Path]:
    return {path.parent.name: path for path in sorted(HERE.glob("*/Dockerfile"))}


def locked(lock: Path) -> dict[str, str]:
    """Return the digest of each tag. Raise Refused where the file is not as `lock` writes it."""
    digests = {}
    for line in lock.read_text().splitlines() if lock.exists() else []:
        if line.startswith("#"):
            continue
        tag, _at, digest = line.partition("@")
        if not DIGEST.fullmatch(digest):
            raise Refused(f"{lock.name}: {line!r} is no image with a digest.")
        digests[tag] = digest
    return digests


def arguments_of(dockerfile: Path, digests: dict[str, str]) -> list[str]:
    """Return the build arguments that fix the bases. Raise Refused for a base without a digest."""
    bases = bases_of(dockerfile)
    missing = sorted(tag for tag in bases.values() if tag not in digests)
    if missing:
        raise Refused(
            f"{LOCK.name} has no digest of {', '.join(missing)}. Run `make bases`, and commit the file."
        )
    return [f"--build-arg={name}_DIGEST={digests[tag]}" for name, tag in bases.items()]


def write_lock(lock: Path) -> None:
    """Write the digests of all bases as of now, or nothing at all."""
    tags = sorted({tag for path in dockerfiles().values() for tag in bases_of(path).values()})
    lines = [f"{tag}@{_digest_of(tag)}\n" for tag in tags]
    lock.write_text(HEADER + "".join(lines))


def build(names: Sequence[str], lock: Path) -> None:
    known, digests = dockerfiles(), locked(lock)
    if unknown := [name for name in names if name not in known]:
        raise Refused(f"There is no image {unknown[0]}: {', '.join(known)}.")
    chosen = {name: arguments_of(known[name], digests) for name in names or known}
    for name, arguments in chosen.items():
        command = ["docker", "build", f"--file={known[name]}", f"--tag=berth/{name}:1", *arguments, str(ROOT)]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Refused(f"The image {name} could not be built: {error}") from error


def _digest_of(tag: str) -> str:
    command = ["docker", "buildx", "imagetools", "inspect", tag, "--format", "{{json .Manifest}}"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=True)
        digest = json.loads(asked.stdout)["digest"]
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError, TypeError) as error:
        raise Refused(f"The digest of {tag} could not be asked for: {error}") from error
    if not DIGEST.fullmatch(str(digest)):
        raise Refused(f"The registry's digest of {tag} is {digest!r}.")
    return str(digest)


def main(arguments: Sequence[str]) -> int:
    try:
        match arguments:
            case ["lock"]:
                write_lock(LOCK)
            case ["build", *names]:
                build(names, LOCK)
            case _:
                print("Usage: build.py lock | build [NAME …]", file=sys.stderr)
                return 2
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
