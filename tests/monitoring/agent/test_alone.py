"""The agent as its own process: its imports, its start and its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from monitoring.agent.__main__ import main, settings_from
from portal.up.plan import REPOSITORY

IMPORTED = "import sys, json, monitoring.agent.__main__; print(json.dumps(list(sys.modules)))"


def test_the_agent_imports_the_standard_library_and_pynvml_only() -> None:
    found = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTED],
        env={"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    names = {name.split(".")[0] for name in json.loads(found.stdout)}
    assert names - set(sys.stdlib_module_names) == {"pynvml", "monitoring", "__main__"}


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the agent without a kubelet and without metrics."""
    variables = {"KUBELET_SOCKET": str(folder / "none"), "LISTEN": "", "INTERVAL_SECONDS": "600"}
    env = {f"BERTH_AGENT_{name}": value for name, value in variables.items()} | {"PATH": os.environ["PATH"]}
    command, pipe = [sys.executable, "-m", "monitoring.agent", *arguments], subprocess.PIPE
    return subprocess.Popen(command, cwd=REPOSITORY, env=env, stdout=pipe, stderr=pipe, text=True)


def test_once_prints_one_look_and_ends(tmp_path: Path) -> None:
    with started(tmp_path, "--once") as agent:
        look, _ = agent.communicate(timeout=60)
    assert (agent.returncode, bool(json.loads(look)["look"]["troubles"])) == (0, True)


def test_a_signal_ends_the_agent(tmp_path: Path) -> None:
    with started(tmp_path) as agent:
        assert agent.stderr
        assert "Troubles now" in agent.stderr.readline()  # it has started, and has no kubelet
        agent.terminate()
        assert agent.wait(20) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORTAL", "portal.example"), ("LISTEN", "127.0.0.1:many"), ("INTERVAL_SECONDS", "soon")],
)
def test_a_wrong_setting_is_named(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["agent"])
    monkeypatch.setenv("BERTH_AGENT_LISTEN", "")
    monkeypatch.setenv(f"BERTH_AGENT_{name}", value)
    with pytest.raises(SystemExit, match=value.rpartition(":")[2]):
        main()


def test_settings_come_from_the_environment() -> None:
    given = {"NODE": "gpu-1", "LISTEN": "10.0.0.7:9465", "INTERVAL_SECONDS": "0.01"}
    settings = settings_from({f"BERTH_AGENT_{name}": value for name, value in given.items()})
    assert (settings.node, settings.listen, settings.interval_seconds) == ("gpu-1", ("10.0.0.7", 9465), 1.0)
    assert settings_from({"BERTH_AGENT_LISTEN": ""}).listen is None
    for address in ("fd00::7:9465", "[fd00::7]:9465"):  # as $(POD_IP):9465 gives it, and as it should be
        assert settings_from({"BERTH_AGENT_LISTEN": address}).listen == ("fd00::7", 9465)
    assert settings_from({}).dev == Path("/dev")
