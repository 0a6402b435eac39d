"""`manage.py bootstrap FILE`: the same file from the command line, with the first admin."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Tenant, User
from quotas.models import Quota

pytestmark = pytest.mark.django_db

FILE = """
clusters:
- {slug: main, name: Main, connection: in-cluster}
pools:
- {slug: a100, name: A100, cluster: main, match_product: NVIDIA-A100-SXM4-80GB}
flavors:
- {slug: a100-1, name: One A100, pool: a100, gpus: 1, cpu: 8, memory_mib: 65536}
images:
- {slug: jupyter, name: JupyterLab, reference: "registry.example/berth/workspace:1"}
tenants:
- {slug: vision, name: Vision}
memberships:
- {tenant: vision, user: root, role: owner}
quotas:
- {tenant: vision, pool: a100, nominal_gpus: 4, borrowing_limit_gpus: 2}
"""


def bootstrap(file: Path, *options: str) -> str:
    out = StringIO()
    call_command("bootstrap", str(file), *options, stdout=out, stderr=out)
    return out.getvalue()


def test_an_empty_installation_is_set_up_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, password = tmp_path / "berth.yaml", tmp_path / "password"
    file.write_text(FILE)
    with pytest.raises(CommandError, match="--admin NAME"):
        bootstrap(file)
    with pytest.raises(CommandError, match="BERTH_ADMIN_PASSWORD"):
        bootstrap(file, "--admin", "root")
    monkeypatch.setenv("BERTH_ADMIN_PASSWORD", "password")
    with pytest.raises(CommandError, match="common"):
        bootstrap(file, "--admin", "root")
    password.write_text("correct-horse-battery\n")
    options = ("--admin", "root", "--password-file", str(password))

    file.write_text(FILE.replace("nominal_gpus: 4", "nominal_gpus: -1"))
    faulty = StringIO()
    with pytest.raises(SystemExit):
        call_command("bootstrap", str(file), *options, stdout=faulty, stderr=faulty)
    assert "line" in faulty.getvalue() and "+ admin" not in faulty.getvalue()
    file.write_text(FILE)

    seen = bootstrap(file, *options, "--dry-run")
    assert "+ quotas vision/a100" in seen and not User.objects.exists()
    made = bootstrap(file, *options)
    assert made.startswith("+ admin root\n") and "+ quotas vision/a100" in made
    assert Quota.objects.get().limit_gpus == 6
    root = User.objects.get()
    assert root.is_staff and root.check_password("correct-horse-battery")
    assert "correct-horse" not in seen
    assert bootstrap(file, *options) == bootstrap(file) == "Nothing to change.\n"

    file.write_text(FILE.replace("nominal_gpus: 4", "nominal_gpus: 0").replace("Vision", "Sight"))
    with pytest.raises(SystemExit) as ended:
        bootstrap(file)
    assert ended.value.code == 2
    assert Tenant.objects.get().name == "Vision"
    file.write_text(FILE.replace("nominal_gpus: 4", "nominal_gpus: 3"))
    assert "nominal_gpus: 4 → 3" in bootstrap(file)
