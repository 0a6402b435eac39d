"""Documents: their links lead somewhere, the files that they and messages name exist, and they list every setting."""

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.gate.rooms import ROOMS

ROOT = Path(__file__).parents[2]
CODE_BLOCK = re.compile(r"^( *)(```|~~~).*?^\1\2\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^()\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\"")
PATH = re.compile(r"(?:[\w.*-]+/)*[\w.*-]+/?")
IS_FILE = re.compile(r"[\w*-][\w.*-]*\.(?:py|md|html|css|js|toml|ya?ml|json|po|sh|in|ini)")
# Of the trial, and of a program that runs in a pod of its own.
NOT_SET_BY_OPERATORS = ("portal/up/", "monitoring/isolation/program.py")
READ = re.compile(r"(?:env\.\w+\(|environ(?:\.get\(|\[))\s*f?\"(BERTH_[^\"]+)\"")
READ_BY_PREFIX = {
    "accounts/directory/configuration.py": "BERTH_LDAP_",
    "accounts/sign_on/configuration.py": "BERTH_OIDC_",
    "monitoring/agent/__main__.py": "BERTH_AGENT_",
}
AFTER_PREFIX = re.compile(r"value\(\"([A-Z_]+)\"")
SETTING = re.compile(r"BERTH_[A-Z0-9_]+")
ROW_OF_SETTINGS = re.compile(r"^\| ((?:`BERTH_[A-Z0-9_]+(?:=1)?`(?:, )?)+) \|", re.MULTILINE)
OF_DEVELOPMENT = {"BERTH_DEBUG", "BERTH_PLAIN_STATIC"}
# Not addresses of other sites; and `deploy/NAME` alone is a Deployment for kubectl.
IN_MESSAGE = re.compile(r"(?<![\w/.-])(?:docs|deploy)/(?:[\w-]+/)*(?:[\w-]+\.\w+|[\w-]+/[\w-]+)")
# A history names files as they were.
HISTORIES = {"CHANGELOG.md"}
# Stands for any name, as in quotas/sharing/NAME.py.
ANY = "NAME"


@cache
def files() -> frozenset[str]:
    """Paths of all files that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return frozenset(name for name in names if name and (ROOT / name).exists())


@cache
def folders() -> frozenset[str]:
    return frozenset(str(parent) for name in files() for parent in Path(name).parents)


DOCUMENTS = sorted(name for name in files() if name.endswith(".md") and Path(name).name not in HISTORIES)


def slug(heading: str) -> str:
    """Return the anchor that a page of Markdown gives to a heading."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@cache
def anchors(document: Path) -> frozenset[str]:
    text = CODE_BLOCK.sub("", document.read_text())
    found = ANCHOR.findall(text)
    for heading in HEADING.findall(text):
        base = slug(heading)
        number = sum(one == base or one.startswith(f"{base}-") for one in found)
        found.append(f"{base}-{number}" if base in found else base)
    return frozenset(found)


def broken_links(document: Path, text: str) -> Iterator[str]:
    for match in LINK.finditer(CODE.sub("", CODE_BLOCK.sub("", text))):
        target = match[1] or match[2]
        if ELSEWHERE.match(target) or target.startswith("/"):
            continue
        path, _, anchor = unquote(target).partition("#")
        there = (document.parent / path).resolve() if path else document
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            yield target


def names_nothing(name: str, document: Path) -> bool:
    """Return True if a word in backticks looks like a path of the repository and no file or folder is there."""
    if not PATH.fullmatch(name):
        return False
    name = name.replace(ANY, "*")
    first, is_nested = name.split("/", maxsplit=1)[0], "/" in name.rstrip("/")
    if not IS_FILE.fullmatch(name.rsplit("/", 1)[-1]) and not (is_nested and first in folders()):
        return False
    if any(True for _ in ROOT.glob(name)) or any(True for _ in document.parent.glob(name)):
        return False
    tail = f"/{name.rstrip('/')}"
    return not any(f"/{there}".endswith(tail) for there in (files() | folders()))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere_and_named_files_exist(name: str) -> None:
    document = ROOT / name
    text = document.read_text()
    assert list(broken_links(document, text)) == []
    named = (" ".join(code.split()) for _ticks, code in CODE.findall(CODE_BLOCK.sub("", text)))
    assert sorted({word for word in named if names_nothing(word, document)}) == []


def test_the_check_itself_finds_what_is_gone(tmp_path: Path) -> None:
    text = (
        "# One `a`, two\n[x](#one-a-two) [x](no.md) [x](#three) [x](https://example.org/y.md)\n`[x](z.md)`\n"
    )
    (document := tmp_path / "page.md").write_text(text)
    assert list(broken_links(document, text)) == ["no.md", "#three"]
    gone = ["quotas/no.py", "no.py", "docs/no/", "tests/*/no_*.yaml"]
    there = [
        "quotas/admission.py",
        "scheduling/walk.py",
        "conftest.py",
        "docs/",
        "requirements/*.txt",
        "quotas/sharing/NAME.py",
    ]
    others = [
        "/etc/passwd",
        "GET pools/",
        "workspaces/{id}/start/",
        "django.conf",
        "metrics.k8s.io",
        "start/",
    ]
    assert [name for name in (*gone, *there, *others) if names_nothing(name, document)] == gone


def code() -> Iterator[tuple[str, str]]:
    """Names and texts of the rooms' modules and templates."""
    for name in sorted(files()):
        if name.startswith(tuple(f"{room}/" for room in (*ROOMS, "templates"))) and name.endswith(
            (".py", ".html")
        ):
            yield name, (ROOT / name).read_text()


def settings_read() -> set[str]:
    """Settings that the rooms read from the environment."""
    found = {
        f"{prefix}{word}"
        for name, prefix in READ_BY_PREFIX.items()
        for word in AFTER_PREFIX.findall((ROOT / name).read_text())
    }
    for name, text in code():
        if not name.startswith(NOT_SET_BY_OPERATORS):
            found |= set(READ.findall(text))
    accounts = {one for one in found if "{" in one}
    assert accounts == {"BERTH_{part.upper()}_ACCOUNT"}
    return found - accounts - OF_DEVELOPMENT | {"BERTH_WATCHER_ACCOUNT", "BERTH_WORKER_ACCOUNT"}


def test_the_operators_tables_have_every_setting_and_no_other() -> None:
    tables = "\n".join(path.read_text() for path in sorted((ROOT / "docs/operator").glob("*.md")))
    listed = set(SETTING.findall(" ".join(ROW_OF_SETTINGS.findall(tables))))
    read = settings_read()
    assert (sorted(read - listed), sorted(listed - read)) == ([], [])


def test_files_that_pages_and_messages_name_exist() -> None:
    gone = {
        (name, path)
        for name, text in code()
        for path in IN_MESSAGE.findall(text)
        if path not in files() | folders()
    }
    assert gone == set()
