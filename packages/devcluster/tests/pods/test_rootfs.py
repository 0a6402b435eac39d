"""Parts of this machine that a process pod sees, decided before anything is mounted."""

from pathlib import Path

from devcluster.kubelet.processes.rootfs import Interpreter


def test_a_link_in_somebodys_home_does_not_show_that_home(tmp_path: Path) -> None:
    prefix, link = tmp_path / "home/.local/share/python-3.11", tmp_path / "home/.local/bin/python3.11"
    for folder in (prefix / "bin", link.parent, tmp_path / "image/bin"):
        folder.mkdir(parents=True)
    (prefix / "bin/python3.11").touch()
    link.symlink_to(prefix / "bin/python3.11")
    (tmp_path / "image/bin/python3").symlink_to(link)
    (tmp_path / "image/bin/python").symlink_to("python3")
    python = Interpreter.of(tmp_path / "image")
    assert python.prefixes == [prefix]
    assert python.links == {link: prefix / "bin/python3.11"}


def test_a_prefix_is_shown_under_its_names(tmp_path: Path) -> None:
    prefix, name = tmp_path / "python-3.11.7", tmp_path / "python-3.11"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/python3").touch()
    name.symlink_to(prefix)
    (tmp_path / "image/bin").mkdir(parents=True)
    (tmp_path / "image/bin/python").symlink_to(name / "bin/python3")
    python = Interpreter.of(tmp_path / "image")
    assert python.prefixes == [name, prefix]
    assert python.links == {}


def test_the_systems_python_needs_nothing_more(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to("/usr/bin/python3")
    assert Interpreter.of(tmp_path) == Interpreter([], {})
