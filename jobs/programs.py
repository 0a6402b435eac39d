"""Program of a job: a command, a script, or a notebook, which becomes a command. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

LONGEST_SCRIPT_BYTES = 256 * 1024
LONGEST_COMMAND_BYTES = 64 * 1024
LONGEST_PATH = 1024
# Papermill, if the image has it, fills in the parameters of a sweep, and writes what it has when a cell fails.
NOTEBOOK = """\
out="${1%.ipynb}-${BERTH_JOB%%-*}-$BERTH_INDEX.ipynb"
[ -n "${BERTH_PARAMETERS:-}" ] || BERTH_PARAMETERS={}
if command -v papermill >/dev/null 2>&1; then
  exec papermill --cwd "$(dirname "$1")" -y "$BERTH_PARAMETERS" "$1" "$out"
fi
exec jupyter nbconvert --to notebook --execute --output "$(basename "$out")" "$1"
"""


def of_notebook(path: str) -> list[str]:
    """Return the command that runs a notebook and writes the result beside it, with the job's id and the index."""
    path = path.removeprefix("~/")
    return ["sh", "-c", NOTEBOOK, "notebook", path if path.startswith("/") else f"./{path}"]


def notebook_of(command: Sequence[str]) -> str:
    """Return the path of the notebook that a command runs, or "" for any other command."""
    return command[4].removeprefix("./") if list(command[:4]) == of_notebook("")[:4] else ""


def check(command: Sequence[str], script: str, notebook: str) -> dict[str, list[str]]:
    """Return faults by field."""
    if (bool(command), bool(script.strip()), bool(notebook)).count(True) != 1:
        return {"command": [_("Give a command, a script or a notebook, and only one of them.")]}
    for name, texts in (("command", command), ("script", [script]), ("notebook", [notebook])):
        if any("\0" in text for text in texts):
            return {name: [_("It has a NUL character, which no command can hold.")]}
    if sum(len(text.encode()) for text in command) > LONGEST_COMMAND_BYTES:
        return {"command": [_("It is longer than 64 KiB. Put it into a file, or use a script.")]}
    if len(script.encode()) > LONGEST_SCRIPT_BYTES:
        return {"script": [_("It is longer than 256 KiB. Put it into a file of your home.")]}
    if notebook and not (notebook.endswith(".ipynb") and len(notebook) <= LONGEST_PATH):
        return {
            "notebook": [_("Give the path of a notebook in your home or on a volume: it ends in .ipynb.")]
        }
    return {}
