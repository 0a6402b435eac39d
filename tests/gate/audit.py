"""Audit of what is pinned: known vulnerabilities, and versions younger than a week.

`python -m tests.gate.audit PIP_AUDIT [LOCK …]` exits 1 if something was found, 3 if something could not be checked,
else 0. NPM in the environment is the command of npm. A source that answers nothing is no good news: pip-audit itself
exits 0 where its source knows none of the packages.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
COOL_OFF = timedelta(days=7)
FOUND, UNKNOWN = 1, 3


@dataclass(frozen=True)
class Finding:
    """A vulnerability, a version that is too young, or (`is_known` false) something that could not be checked."""

    what: str
    text: str
    is_known: bool = True

    def __str__(self) -> str:
        return f"{self.what}: {self.text}" if self.is_known else f"{self.what}: not checked. {self.text}"


def of_pip_audit(lock: str, output: str, error: str) -> list[Finding]:
    """Return what pip-audit's JSON says of a lock file. `error` is its error output, if it wrote no JSON."""
    try:
        packages: list[dict[str, Any]] = json.loads(output)["dependencies"]
    except ValueError:
        return [_unknown(lock, f"pip-audit could not ask: {_last_line(error)}")]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    found = [
        Finding(lock, _vulnerability(package, known))
        for package in packages
        for known in package.get("vulns", [])
    ]
    if skipped:
        text = (
            f"The source knows nothing of {len(skipped)} of {len(packages)} packages, such as {skipped[0]}."
        )
        found.append(_unknown(lock, text))
    return found


def of_npm_audit(output: str) -> list[Finding]:
    """Return what `npm audit --json` says."""
    try:
        answer = json.loads(output)
        found: dict[str, Any] = answer["vulnerabilities"]
    except (ValueError, KeyError):
        return [_unknown("package-lock.json", "npm could not ask for advisories.")]
    return [
        Finding("package-lock.json", f"{name} {about.get('range', '')}: {about.get('severity', 'unknown')}")
        for name, about in found.items()
    ]


def of_uv(lock: str, code: int, error: str) -> list[Finding]:
    """Return what uv says of a lock file that may only have versions which are old enough. It names the first."""
    if code == 0:
        return []
    if "was filtered by `exclude-newer`" in error:
        hint = error.partition("hint: ")[2].partition("\n")[0] or _last_line(error)
        return [Finding(lock, f"younger than {COOL_OFF.days} days: {hint}")]
    return [_unknown(lock, f"uv could not ask for the ages: {_last_line(error)}")]


def of_npm_view(name: str, version: str, output: str, now: datetime) -> list[Finding]:
    """Return whether the version is too young, by the times that `npm view NAME time --json` lists."""
    try:
        published = datetime.fromisoformat(json.loads(output)[version])
    except (ValueError, KeyError, TypeError):
        return [_unknown(f"{name} {version}", "npm could not ask for its age.")]
    is_young = published > now - COOL_OFF
    return [Finding(f"{name} {version}", f"younger than {COOL_OFF.days} days")] if is_young else []


def verdict(findings: Iterable[Finding]) -> int:
    """Return the exit status."""
    kinds = {finding.is_known for finding in findings}
    return FOUND if True in kinds else UNKNOWN if kinds else 0


def audited(pip_audit: str, locks: Sequence[Path]) -> Iterable[Finding]:
    """Ask the tools, one after another. Each finding comes as soon as it is known."""
    options = ["--format", "json", "--progress-spinner", "off", "--disable-pip", "--require-hashes"]
    old_enough = ["--quiet", "--no-deps", "--universal", "--no-header", "--exclude-newer"]
    uv = [str(ROOT / ".venv/bin/uv"), "pip", "compile", *old_enough, f"{COOL_OFF.days} days"]
    for lock in locks:
        asked = _run([pip_audit, *options, "-r", str(lock)])
        yield from of_pip_audit(lock.name, asked.stdout, asked.stderr)
        asked = _run([*uv, str(lock)])
        yield from of_uv(lock.name, asked.returncode, asked.stderr)
    npm = shlex.split(os.environ.get("NPM", "npm"))
    yield from of_npm_audit(_run([*npm, "audit", "--package-lock-only", "--json"]).stdout)
    for name, version in json.loads((ROOT / "package.json").read_text())["dependencies"].items():
        times = _run([*npm, "view", name, "time", "--json"]).stdout
        yield from of_npm_view(name, version, times, datetime.now(UTC))


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _vulnerability(package: dict[str, Any], known: dict[str, Any]) -> str:
    fixed = ", ".join(known.get("fix_versions", [])) or "nothing yet"
    return f"{package['name']} {package['version']} has {known['id']}, fixed in {fixed}"


def _unknown(what: str, text: str) -> Finding:
    return Finding(what, text, is_known=False)


def _last_line(text: str) -> str:
    return next((line for line in reversed(text.splitlines()) if line.strip()), "no word of why").strip()


def main(arguments: Sequence[str]) -> int:
    pip_audit, *named = arguments
    locks = [Path(name) for name in named] or sorted((ROOT / "requirements").glob("*.txt"))
    findings = []
    for finding in audited(pip_audit, locks):
        print(finding, flush=True)
        findings.append(finding)
    status = verdict(findings)
    words = {
        0: "No known vulnerability, and no version younger than a week.",
        FOUND: "Something was found: see above.",
        UNKNOWN: "Nothing was found, but NOT everything could be checked: a source could not be reached.",
    }
    print(words[status])
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
