"""Kinds of sharing are named in `quotas/sharing/` alone: other code asks the strategy for a trait."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

from quotas.models import Sharing
from quotas.sharing import STRATEGIES

ROOT = Path(__file__).parents[3]
PYTHON = ["portal", "monitoring", "workspaces", "storage", "quotas", "clusters", "accounts", "vitals"]
PAGES = ["templates", "static"]
MODULES = {type(strategy).__module__ for strategy in STRATEGIES.values()}
NOT_LOOKED_AT = (
    "quotas/sharing/",
    "quotas/models/pools.py",  # the choices
    "monitoring/agent/",  # imports nothing of Berth; "mig" is a key of its reports
)
REPORTED = {"'mig'"}  # a key of agents' reports
LEFT = {
    "clusters/doctor/nodes.py": {"'gpu-manager'"},  # the name of a device plugin
    "clusters/nodes/parts.py": {"'gpu-manager'"},  # the same
    "monitoring/dcgm/translation.py": REPORTED,
    "monitoring/intake/receive.py": REPORTED,
    "monitoring/parts/looks.py": {"'hami'"},  # whether its scheduler must be there
    "monitoring/parts/versions.py": {"'mps'"},  # which device plugins have it
    "quotas/pools/bad_gpus.py": REPORTED,
    "quotas/pools/gpu_reports.py": REPORTED,
}

# To read a file as Python takes a thousand times longer.
WORTH_READING = re.compile(
    "|".join(["Sharing", *Sharing.values, *(name.rsplit(".")[-1] for name in MODULES)])
)


def named_in_python(text: str) -> set[str]:
    found = set[str]()
    if not WORTH_READING.search(text):
        return found
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(value=ast.Name("Sharing") | ast.Attribute(attr="Sharing"), attr=kind):
                found |= {f"Sharing.{kind}"} & {f"Sharing.{name}" for name in Sharing.names}
            case ast.Constant(value=str(word)) if word in Sharing.values:
                found.add(f"'{word}'")
            case ast.ImportFrom(module=str(module), names=names):
                found |= {module, *(f"{module}.{one.name}" for one in names)} & MODULES
    return found


def named_in_page(text: str) -> set[str]:
    return {f"'{word}'" for word in re.findall(r"""["']([\w-]+)["']""", text) if word in Sharing.values}


def test_no_other_source_names_a_kind() -> None:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *PYTHON, *PAGES]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    found = {}
    for name in names:
        if name.startswith(NOT_LOOKED_AT) or "/migrations/" in name or not (ROOT / name).is_file():
            continue
        if name.endswith((".py", ".html", ".js")):
            read = named_in_python if name.endswith(".py") else named_in_page
            if kinds := read((ROOT / name).read_text()):
                found[name] = kinds
    assert found == LEFT


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("pool.sharing == Sharing.HAMI", {"Sharing.HAMI"}),
        ("models.Sharing.MIG", {"Sharing.MIG"}),
        ("pool.sharing in ('mps', 'hami')", {"'mps'", "'hami'"}),
        ("from quotas.sharing import hami, of", {"quotas.sharing.hami"}),
        ("from clusters.nodes import hami; Sharing.choices; 'HAMi'", set()),
    ],
)
def test_a_kind_is_found_however_it_is_named(text: str, found: set[str]) -> None:
    assert named_in_python(text) == found
