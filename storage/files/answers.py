"""Refusals of the program in the pod, in the reader's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import Refusal

WORDS: dict[str, tuple[Promise, Promise]] = {
    "no_such_file": (gettext_lazy("There is no such file or folder."), gettext_lazy("Load the list again.")),
    "no_folder": (
        gettext_lazy("This is no folder. Links are not followed here."),
        gettext_lazy("Open it in a workspace."),
    ),
    "no_file": (
        gettext_lazy("This is no regular file. Links are not followed here."),
        gettext_lazy("Open it in a workspace."),
    ),
    "is_folder": (gettext_lazy("A folder has this name."), gettext_lazy("Choose another name.")),
    "already_there": (
        gettext_lazy("A file or folder with this name is already there."),
        gettext_lazy("Choose another name."),
    ),
    "not_empty": (
        gettext_lazy("The folder is not empty."),
        gettext_lazy("Delete it with “recursive”, or delete what is in it first."),
    ),
    "too_deep": (
        gettext_lazy("The folder is nested too deeply to delete it here."),
        gettext_lazy("Delete it in a workspace."),
    ),
    "bad_path": (
        gettext_lazy("This path cannot be used."),
        gettext_lazy("Use names of up to 255 bytes with “/” between them, without “.” and “..”."),
    ),
    "bad_range": (
        gettext_lazy("The range does not fit the file."),
        gettext_lazy("Send “Content-Range: bytes FIRST-LAST/SIZE” with as many bytes."),
    ),
    "wrong_offset": (
        gettext_lazy("The upload continues at another byte: see “received”."),
        gettext_lazy("Continue there, or begin at byte 0."),
    ),
    "upload_busy": (
        gettext_lazy("Another request is uploading this file."),
        gettext_lazy("Wait until it has ended."),
    ),
    "no_length": (gettext_lazy("The size of the upload is missing."), gettext_lazy("Send Content-Length.")),
    "no_permission": (
        gettext_lazy("Files of another user: they cannot be changed or read here."),
        gettext_lazy("Change their permissions in a workspace, where they were made."),
    ),
    "read_only": (
        gettext_lazy("The volume is open to read only."),
        gettext_lazy("Close the files and open them again when nothing else has it mounted."),
    ),
    "volume_full": (gettext_lazy("The volume is full."), gettext_lazy("Delete files, or grow the volume.")),
    "too_many": (
        gettext_lazy("Too many requests for files of this volume at the same time."),
        gettext_lazy("Wait for some to end."),
    ),
}


class Failed(Refusal):
    """Refusal with the status that the program gave."""

    def __init__(self, status: int, code: str, message: str, hint: str, facts: Mapping[str, Any]) -> None:
        super().__init__(code, message, hint, fields=facts)
        self.status = status


def refusal(status: int, facts: Mapping[str, Any]) -> Refusal:
    """Return what the program refused. `received`, where an upload continues, is among the fields."""
    code = str(facts.get("code", ""))
    if code not in WORDS:
        return away()
    sentence, hint = WORDS[code]
    numbers = {name: [str(facts[name])] for name in ("received", "size") if name in facts}
    retry = 1 if status == 429 else None
    failed = Failed(status, code, str(sentence), str(hint), numbers)
    failed.retry_after_seconds = retry
    return failed


def away() -> Refusal:
    """Return the refusal for a session that does not answer, or not as it should."""
    text = _("The files session does not answer.")
    failed = Failed(502, "files_session_away", text, _("Try again in a few seconds."), {})
    failed.retry_after_seconds = 3
    return failed
