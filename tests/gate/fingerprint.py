"""Fingerprint of the trial cluster: its code, its tests and the recorded contract.

`python -m tests.gate.fingerprint check` exits 1 where these files differ from those that last passed `make
test-cluster`; `write` records the files as they are now. Only `make test-cluster` writes it, when it was green.
"""

import hashlib
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "packages/devcluster"
FOLDERS = (f"{PACKAGE}/src", f"{PACKAGE}/tests", f"{PACKAGE}/pyproject.toml", "tests/cluster_contract")
PASSED = f"{PACKAGE}/tests/passed.sha256"


def fingerprint(root: Path, files: Iterable[str]) -> str:
    """Return the hash of the files' names and contents, whatever their order."""
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}\0{hashlib.sha256((root / name).read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def covered(root: Path) -> list[str]:
    """Return the files of the trial cluster that are, or would be, committed."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *FOLDERS]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and name != PASSED and (root / name).is_file()]


def main(verb: str, root: Path = ROOT) -> int:
    now = fingerprint(root, covered(root))
    passed = root / PASSED
    if verb == "write":
        passed.write_text(now + "\n")
        return 0
    if passed.exists() and passed.read_text().strip() == now:
        return 0
    print(
        f"The trial cluster, its tests or the contract changed since {PASSED} was written: its own tests run."
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
