"""Build Berth's images on bases that are named by digest, so that what was looked at is what runs.

`lock` asks the registries for the digests of the tags in the Dockerfiles, and writes bases.lock: look at what changed,
and commit it. `build [NAME …]` builds all images, or the named ones, on the bases of bases.lock and no others. A
Dockerfile has no digest itself: by hand, `docker build` fails without `--build-arg …_DIGEST=sha256:…`.

For a site without internet, `save FILE [REFERENCE …]` writes Berth's images, and others that it pulls, into one file
for `docker load`. `push PREFIX [REFERENCE …]` pushes them to a registry under a prefix, and prints what to write into
berth-values.yaml, with digests; what stands for a REFERENCE there is printed as a comment.
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
PREFIX = re.compile(r"[a-z0-9.-]+(?::\d+)?(?:/[a-z0-9._-]+)*")
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
        command = ["docker", "build", f"--file={known[name]}", f"--tag={_own(name)}", *arguments, str(ROOT)]
        try:
            subprocess.run(command, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise Refused(f"The image {name} could not be built: {error}") from error


def save(file: str, references: Sequence[str]) -> None:
    """Write Berth's images and the references into one file for `docker load`."""
    for reference in references:
        _docker("pull", reference)
    _docker("save", f"--output={file}", *map(_own, dockerfiles()), *references)


def push(prefix: str, references: Sequence[str]) -> str:
    """Push Berth's images and the references under a prefix. Return the values of the chart that name them there."""
    prefix = prefix.rstrip("/")
    if not PREFIX.fullmatch(prefix):
        raise Refused(
            f"{prefix!r} is no prefix: write registry.example/berth, without https:// and without a tag."
        )
    parts = {name: _pushed(_own(name), f"{prefix}/{name}:1") for name in dockerfiles()}
    others = [(one, _pushed(one, f"{prefix}/{_name_of(one)}")) for one in references]

    def image(name: str) -> str:
        repository, _at, digest = parts[name].partition("@")
        return f"image: {{repository: {repository}, digest: {digest!r}}}".replace("'", '"')

    lines = [
        image("portal"),
        "agent:",
        f"  {image('agent')}",
        f"# an image of the catalogue: {parts['workspace']}",
    ]
    return "\n".join([*lines, *(f"# {one}: {pushed}" for one, pushed in others)])


def _own(name: str) -> str:
    return f"berth/{name}:1"


def _name_of(reference: str) -> str:
    """Return path and tag of a reference without its registry. One by digest alone gets the tag 1."""
    name = reference.partition("@")[0]
    host, slash, path = name.partition("/")
    if slash and (host == "localhost" or "." in host or ":" in host):
        name = path
    return name if ":" in name.rpartition("/")[2] else f"{name}:{1 if '@' in reference else 'latest'}"


def _pushed(source: str, target: str) -> str:
    """Push an image by another name. Return its repository there with the digest."""
    _docker("tag", source, target)
    _docker("push", target)
    repository = target.rpartition(":")[0]
    found = _docker("image", "inspect", "--format={{json .RepoDigests}}", target, capture_output=True)
    try:
        return next(str(one) for one in json.loads(found) if one.startswith(f"{repository}@sha256:"))
    except (ValueError, TypeError, StopIteration) as error:
        raise Refused(f"The registry's digest of {target} is unknown: {found.strip()!r}.") from error


def _docker(*arguments: str, capture_output: bool = False) -> str:
    try:
        done = subprocess.run(
            ["docker", *arguments],
            stdout=subprocess.PIPE if capture_output else 2,  # what is printed is the values alone
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise Refused(f"`docker {' '.join(arguments)}` failed: {error}") from error
    return done.stdout or ""


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
            case ["save", file, *references]:
                save(file, references)
            case ["push", prefix, *references]:
                print(push(prefix, references))
            case _:
                usage = "lock | build [NAME …] | save FILE [REFERENCE …] | push PREFIX [REFERENCE …]"
                print(f"Usage: build.py {usage}", file=sys.stderr)
                return 2
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
