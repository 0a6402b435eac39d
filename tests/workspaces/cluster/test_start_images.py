"""The start script in images that lack something, and with Pythons of other kinds."""

from __future__ import annotations

import configparser
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.workspaces.package import make_package
from tests.workspaces.podlike import UID, Pod, add_sshd, hide_sshd, until
from workloads.start import python_layer
from workspaces.cluster.pod import GRACE_SECONDS

pytestmark = pytest.mark.slow

SYSTEM_PYTHON = Path("/usr/bin/python3")


@pytest.fixture
def pod() -> Iterator[Pod]:
    """Pod with the host's own programs, without a virtual environment."""
    pod = Pod(path="/usr/bin:/bin")
    try:
        yield pod
    finally:
        pod.destroy()


def test_without_jupyter_there_is_ssh_and_pip_installs_for_the_user(pod: Pod) -> None:
    if subprocess.run([SYSTEM_PYTHON, "-m", "pip", "--version"], check=False, capture_output=True).returncode:
        pytest.skip("the system's Python has no pip (apt install python3-pip)")
    add_sshd(pod)
    make_package(pod.home / "pkg", owner=UID)
    pod.start()
    pod.wait_for_ssh()
    assert "no JupyterLab" in pod.logged()
    assert "Successfully installed" in pod.says("pip install ./pkg")
    assert pod.stop() < GRACE_SECONDS
    pod.start()
    pod.wait_for_ssh()
    assert pod.says("greet; python3 -c 'import greeting; print(greeting.__file__)'").split()[0] == "hello"
    # The person's own environments are left alone
    assert "Successfully installed" in pod.says("python3 -m venv --system-site-packages --without-pip own &&"
                                                " own/bin/python -m pip install --ignore-installed ./pkg")  # fmt: skip
    assert pod.says("ls own/lib/python3*/site-packages/greeting.py")


def test_without_anything_to_serve_it_says_so_and_ends(pod: Pod) -> None:
    hide_sshd(pod)
    pod.start()
    assert pod.process is not None
    pod.process.wait(60)
    assert "neither sshd nor a Python with asyncssh" in pod.logged()
    assert "no JupyterLab" in pod.logged()


def test_a_python_that_could_write_to_the_image_is_told_to_install_for_the_user(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[global]\ntimeout = 7\n")
    python_layer.install_as_user(tmp_path)
    settings = configparser.RawConfigParser()
    settings.read(tmp_path / "pip.conf")
    assert settings["install"]["user"] == "true" and settings["global"]["timeout"] == "7"


def test_a_command_of_the_image_runs_in_the_layer_unless_its_person_has_another(tmp_path: Path) -> None:
    image, layer = tmp_path / "image", tmp_path / "layer"
    (image / "bin").mkdir(parents=True)
    (layer / "bin").mkdir(parents=True)
    (image / "bin" / "tool").write_text(f"#!{image}/bin/python\nprint()\n")
    (image / "bin" / "own").write_text(f"#!{image}/bin/python\n")
    (image / "bin" / "binary").write_bytes(b"\x7fELF" + bytes(100))
    (layer / "bin" / "own").write_text("mine")
    for name in ("tool", "own", "binary"):
        python_layer.copy_command(image / "bin" / name, layer / "bin" / name)
    assert (layer / "bin" / "tool").read_text() == f"#!{layer}/bin/python\nprint()\n"
    assert (layer / "bin" / "own").read_text() == "mine"
    assert not (layer / "bin" / "binary").exists()


def test_a_pod_address_is_where_it_listens_and_nowhere_else(pod: Pod) -> None:
    add_sshd(pod)
    pod.start()
    pod.wait_for_ssh()
    listening = pod.says("cat /proc/net/tcp | awk '$4 == \"0A\" && $2 ~ /:08AE$/ {print $2}'").split()
    expected = bytes(map(int, reversed(pod.address.split(".")))).hex().upper()
    assert f"{expected}:08AE" in listening and "00000000:08AE" not in listening
    until("no zombie", lambda: " Z" not in pod.says("ps ax -o pid,stat"))
