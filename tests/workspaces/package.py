"""A small Python package for `pip install`."""

from __future__ import annotations

import os
from pathlib import Path


def make_package(folder: Path, *, name: str = "greeting", version: str = "1.0", owner: int = -1) -> None:
    """Make a package that pip builds without the network: its build backend is in it."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (folder / "backend.py").write_text(
        f"""
import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    info = "{name}-{version}.dist-info"
    files = {{
        "{name}.py": "word = 'hello'\\ndef greet(): print(word)\\n",
        info + "/METADATA": "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n",
        info + "/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        info + "/entry_points.txt": "[console_scripts]\\ngreet = {name}:greet\\n",
    }}
    files[info + "/RECORD"] = "".join(path + ",,\\n" for path in [*files, info + "/RECORD"])
    with zipfile.ZipFile(folder + "/{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return "{name}-{version}-py3-none-any.whl"
"""
    )
    for path in (folder, *folder.iterdir()):
        os.chown(path, owner, owner)
