"""Tests of `make audit`, on what its tools write: what they find is red, and what they cannot ask is never green."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.gate import audit
from tests.gate.audit import (
    FOUND,
    ROOT,
    UNKNOWN,
    of_npm_audit,
    of_npm_view,
    of_pip_audit,
    of_uv,
    verdict,
)

NOW = datetime(2026, 11, 23, tzinfo=UTC)
# As pip-audit 2.10.1, uv 0.13.8 and npm wrote it.
SKIPPED = {"name": "uv", "skip_reason": "Dependency not found on PyPI and could not be audited: uv (0.13.8)"}
BAD = {
    "name": "jinja2",
    "version": "2.4.1",
    "vulns": [{"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"], "aliases": ["CVE-2019-10906"]}],
}
GOOD = {"name": "django", "version": "5.2.19", "vulns": []}
YOUNG = """error: No solution found when resolving dependencies
  cause: Because there is no version of uv==0.13.8 and you require uv==0.13.8, we can conclude that ...

hint: `uv` was filtered by `exclude-newer` to only include packages uploaded before 2020-01-02T00:00:00Z. The requested
"""
AWAY = "error: Request failed after 3 retries in 9.7s\n  cause: Connection refused (os error 111)\n"
NO_ADVISORIES = json.dumps({"message": "405 Method Not Allowed", "method": "POST", "statusCode": 405})


def pip_audit(*packages: object) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


def test_a_vulnerability_is_named_with_its_package_version_and_cure() -> None:
    [finding] = of_pip_audit("runtime.txt", pip_audit(BAD, GOOD), "")
    assert str(finding) == "runtime.txt: jinja2 2.4.1 has PYSEC-2019-217, fixed in 2.10.1"
    assert verdict([finding]) == FOUND


def test_all_well_is_green() -> None:
    found = [
        *of_pip_audit("a", pip_audit(GOOD), ""),
        *of_uv("a", 0, ""),
        *of_npm_audit('{"vulnerabilities": {}}'),
    ]
    assert verdict(found) == 0


@pytest.mark.parametrize(
    "found",
    [
        of_pip_audit("a", pip_audit(GOOD, SKIPPED), ""),
        of_pip_audit("a", "", "requests.exceptions.ProxyError: no"),
        of_uv("a", 2, AWAY),
        of_npm_audit(NO_ADVISORIES),
        of_npm_audit(""),
        of_npm_view("uplot", "1.6.32", "", NOW),
        of_npm_view("uplot", "1.6.32", '{"1.0.0": "2020-01-01T00:00:00.000Z"}', NOW),
    ],
)
def test_what_could_not_be_asked_is_neither_green_nor_a_finding(found: list[audit.Finding]) -> None:
    assert "not checked" in str(found[0])
    assert verdict(found) == UNKNOWN
    assert verdict([*found, *of_pip_audit("b", pip_audit(BAD), "")]) == FOUND


def test_a_young_version_is_named() -> None:
    [finding] = of_uv("uv.txt", 1, YOUNG)
    assert "younger than 7 days: `uv` was filtered" in str(finding)
    for age, is_young in ((timedelta(days=6, hours=23), True), (timedelta(days=7, hours=1), False)):
        times = json.dumps({"1.6.32": (NOW - age).isoformat()})
        assert bool(of_npm_view("uplot", "1.6.32", times, NOW)) == is_young


@pytest.mark.parametrize(("packages", "status"), [([GOOD], 0), ([BAD], FOUND), ([SKIPPED], UNKNOWN)])
def test_the_command_asks_the_tools_for_each_lock_file(
    packages: list[object],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The tools are scripts that answer as the real ones do; nothing is asked of a network."""
    pinned = json.loads((ROOT / "package.json").read_text())["dependencies"].values()
    times = dict.fromkeys(pinned, "2020-01-01T00:00:00Z")
    answers = tmp_path / "npm.py"
    answers.write_text(
        f"import sys\nprint({json.dumps(times)!r} if 'view' in sys.argv else '{{\"vulnerabilities\": {{}}}}')"
    )
    tool = tmp_path / "pip-audit"
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{pip_audit(*packages)}\nEND\n")
    tool.chmod(0o755)
    monkeypatch.setenv("NPM", f"{sys.executable} {answers}")
    monkeypatch.setenv("UV_OFFLINE", "1")
    empty = tmp_path / "lock.txt"
    empty.write_text("")
    assert audit.main([str(tool), str(empty)]) == status
    assert capsys.readouterr().out.count("lock.txt") == len(packages) * (status != 0)


def test_versions_are_pinned_seven_days_late() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert f'--exclude-newer "{audit.COOL_OFF.days} days"' in makefile
    assert f"--before=\"$$(date -u -d '{audit.COOL_OFF.days} days ago' +%FT%TZ)\"" in makefile
    for lock in (ROOT / "requirements").glob("*.txt"):
        assert f"--exclude-newer {audit.COOL_OFF.days} days" in lock.read_text().partition("==")[0], lock


def test_make_lock_writes_every_lock_file() -> None:
    written = re.findall(
        r"\$\(COMPILE\) requirements/(\w+)\.in -o requirements/(\w+)\.txt", (ROOT / "Makefile").read_text()
    )
    assert {pair[0] for pair in written} == {lock.stem for lock in (ROOT / "requirements").glob("*.txt")}
    assert all(source == to for source, to in written)
