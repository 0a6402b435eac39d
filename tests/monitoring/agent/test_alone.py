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


def test_it_imports_the_standard_library_and_pynvml_and_nothing_else() -> None:
    told = subprocess.run(
        [sys.executable, "-S", "-c", IMPORTED],
        env={"PYTHONPATH": os.pathsep.join([str(REPOSITORY), *sys.path])},
        capture_output=True,
        text=True,
        check=True,
    )
    names = {name.split(".")[0] for name in json.loads(told.stdout)}
    assert names - set(sys.stdlib_module_names) == {"pynvml", "monitoring", "__main__"}


def test_it_tells_one_look_and_ends(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "monitoring.agent", "--once"],
        cwd=REPOSITORY,
        env={"PATH": os.environ["PATH"], "BERTH_AGENT_KUBELET_SOCKET": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(told.stdout)["look"]["troubles"]


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "monitoring.agent"],
        cwd=REPOSITORY,
        env={
            "PATH": os.environ["PATH"],
            "BERTH_AGENT_KUBELET_SOCKET": str(tmp_path / "none"),
            "BERTH_AGENT_LISTEN": "",
            "BERTH_AGENT_INTERVAL_SECONDS": "600",
        },
        stderr=subprocess.PIPE,
        text=True,
    ) as agent:
        assert agent.stderr
        assert "Troubles now" in agent.stderr.readline()  # it has started, and has no kubelet
        agent.terminate()
        assert agent.wait(20) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORTAL", "portal.example"), ("LISTEN", "127.0.0.1:many"), ("INTERVAL_SECONDS", "soon")],
)
def test_settings_that_make_no_sense_are_named(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["agent"])
    monkeypatch.setenv("BERTH_AGENT_LISTEN", "")
    monkeypatch.setenv(f"BERTH_AGENT_{name}", value)
    with pytest.raises(SystemExit, match=value.rpartition(":")[2]):
        main()


def test_settings_come_from_the_environment() -> None:
    settings = settings_from(
        {
            "BERTH_AGENT_NODE": "gpu-1",
            "BERTH_AGENT_LISTEN": "10.0.0.7:9465",
            "BERTH_AGENT_INTERVAL_SECONDS": "0.01",
        }
    )
    assert (settings.node, settings.listen, settings.interval_seconds) == ("gpu-1", ("10.0.0.7", 9465), 1.0)
    assert settings_from({"BERTH_AGENT_LISTEN": ""}).listen is None
    for address in ("fd00::7:9465", "[fd00::7]:9465"):  # as $(POD_IP):9465 gives it, and as it should be
        assert settings_from({"BERTH_AGENT_LISTEN": address}).listen == ("fd00::7", 9465)
    assert settings_from({}).dev == Path("/dev")
