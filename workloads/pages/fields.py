"""Fields of several forms."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, count
from typing import Any

from django import forms
from django.utils.translation import gettext

# As in the files of variables of GitHub's actions: NAME<<END, lines, END.
HERE = re.compile(r"\s*([^\s=]+)<<(\S+)\s*")
LINE_END = re.compile(r"\r\n|\r|\n")


class EnvironmentField(forms.CharField):
    """Field of NAME=value lines, and of values with several lines. Its first value may be names and values."""

    def __init__(self, **options: Any) -> None:
        widget = forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off"})
        super().__init__(required=False, widget=widget, strip=False, **options)

    def prepare_value(self, value: Any) -> Any:
        return lines_of_env(value) if isinstance(value, Mapping) else value

    def holds(self, values: Mapping[str, str]) -> bool:
        """Return False if a form could not give one of the values back, as browsers send line ends of one kind."""
        try:
            return self.to_python(self.prepare_value(values)) == values
        except forms.ValidationError:
            return False

    def to_python(self, value: Any) -> dict[str, str]:  # type: ignore[override]
        if isinstance(value, Mapping):
            return dict(value)
        values: dict[str, str] = {}
        lines = enumerate(LINE_END.split(str(value or "")), start=1)
        for number, line in lines:
            if not line.strip():
                continue
            name, text = (
                _here(found, number, lines) if (found := HERE.fullmatch(line)) else _one(line, number)
            )
            if name in values:
                raise forms.ValidationError(
                    gettext("Line %(n)d names a variable for the second time.") % {"n": number}
                )
            values[name] = text
        return values


def _one(line: str, number: int) -> tuple[str, str]:
    name, separator, text = line.partition("=")
    if not separator:
        raise forms.ValidationError(gettext("Line %(n)d has no “=”. Write NAME=value.") % {"n": number})
    return name.strip(), text


def _here(found: re.Match[str], number: int, lines: Iterator[tuple[int, str]]) -> tuple[str, str]:
    """Take the lines of a value up to its last word."""
    name, end = found.groups()
    taken: list[str] = []
    for _number, line in lines:
        if line == end:
            return name, "\n".join(taken)
        taken.append(line)
    raise forms.ValidationError(
        gettext("The value that begins in line %(n)d does not end: no line is “%(end)s”.")
        % {"n": number, "end": end}
    )


def lines_of_env(values: Mapping[str, str]) -> str:
    """Return names and values as the field's text."""
    return "\n".join(_line(name, text) for name, text in values.items())


def _line(name: str, text: str) -> str:
    if "\n" not in text:
        return f"{name}={text}"
    words = chain(["END"], (f"END{number}" for number in count(2)))
    end = next(word for word in words if word not in text.split("\n"))
    return f"{name}<<{end}\n{text}\n{end}"


def plain_text(**attributes: str) -> forms.TextInput:
    """Text input without completion and spell check, for names and addresses."""
    return forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", **attributes})
