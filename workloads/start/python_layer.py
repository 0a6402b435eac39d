"""Make packages of `pip install` survive the container: they must go to the home, and be found there after a restart.

Run by the image's own Python; prints the folder of a virtual environment to put first, or nothing. Two kinds of Python:

- An ordinary Python knows user installations (PYTHONUSERBASE). pip chooses them where it may not write to the
  image; where it may, the configuration of this Python says so. (PIP_USER in the environment would break pip in
  every virtual environment that the person makes.)
- In a virtual environment pip refuses user installations. So a second environment in the home is laid over it: the same
  interpreter, the home's packages first, then the image's; and copies of the image's commands, which find both.
"""

from __future__ import annotations

import configparser
import os
import sys
import sysconfig
from collections.abc import Callable
from functools import partial
from pathlib import Path


def install_as_user(prefix: Path) -> None:
    """Configure the pip of this Python to install for the user, although it could write to the image."""
    path = prefix / "pip.conf"
    settings = configparser.RawConfigParser()
    settings.read(path)
    if not settings.has_section("install"):
        settings.add_section("install")
    settings.set("install", "user", "true")
    with path.open("w") as file:
        settings.write(file)


def lay_over(image: Path, layer: Path) -> None:
    """Create or repair the environment `layer` over the virtual environment `image`; installed packages stay."""
    (layer / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3", f"python3.{sys.version_info.minor}"):
        replace(layer / "bin" / name, lambda link: link.symlink_to(image / "bin" / "python3"))
    replace(layer / "image", lambda link: link.symlink_to(image))
    replace(layer / "pyvenv.cfg", lambda file: file.write_bytes((image / "pyvenv.cfg").read_bytes()))
    for packages in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        own = layer / Path(packages).relative_to(image)
        own.mkdir(parents=True, exist_ok=True)
        line = f"import site; site.addsitedir({packages!r})\n"
        replace(own / "image.pth", partial(Path.write_text, data=line))
    for command in (image / "bin").iterdir():
        copy_command(command, layer / "bin" / command.name)


def copy_command(command: Path, copy: Path) -> None:
    """Copy a Python script of the image so that the layer's interpreter runs it; never over an existing file."""
    if copy.exists() or not command.is_file() or command.stat().st_size > 1 << 16:
        return
    text = command.read_bytes()
    interpreter = os.fsencode(command.parent / "python")
    if text.startswith(b"#!") and interpreter in b"".join(text.splitlines()[:3]):
        copy.write_bytes(text.replace(interpreter, os.fsencode(copy.parent / "python"), 1))
        copy.chmod(0o755)


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Make `path` in one step, so that a running program never finds it missing or half written."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    make(new)
    new.replace(path)


def main() -> None:
    prefix = Path(sys.prefix)
    if sys.prefix != sys.base_prefix:
        layer = Path(os.environ["PYTHONUSERBASE"]) / "share" / "berth" / f"python3.{sys.version_info.minor}"
        lay_over(prefix, layer)
        print(layer)
    elif os.access(sysconfig.get_path("purelib"), os.W_OK) and os.access(prefix, os.W_OK):
        install_as_user(prefix)


if __name__ == "__main__":
    main()
