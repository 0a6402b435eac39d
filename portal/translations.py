"""The catalogues of translated sentences in locale/: extract sentences, and keep the files up to date.

`python -m portal.translations` updates every .po file from the code and the templates: new sentences are added
empty, unused ones are removed. Babel does the work, so GNU gettext need not be installed; `make` compiles the files.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir, extract_python
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

from portal.environment import BASE_DIR

LOCALE_DIR = BASE_DIR / "locale"
ROOMS = (
    "accounts",
    "clusters",
    "quotas",
    "storage",
    "workloads",
    "workspaces",
    "jobs",
    "monitoring",
    "portal",
)
UNKEPT = tuple(
    f'"{name}' for name in ("Report-Msgid", "POT-Creation", "PO-Revision", "Last-Translator", "Generated")
)
KEYWORDS: dict[str, Any] = {
    **dict.fromkeys(("_", "_lazy", "gettext", "gettext_lazy", "gettext_noop")),
    **dict.fromkeys(("ngettext", "ngettext_lazy"), (1, 2)),
    **dict.fromkeys(("pgettext", "pgettext_lazy"), ((1, "c"), 2)),
    **dict.fromkeys(("npgettext", "npgettext_lazy"), ((1, "c"), 2, 3)),
}
METHODS = [
    ("**.py", "python"),
    ("**.html", "portal.translations:from_template"),
    ("**.txt", "portal.translations:from_template"),
]


def from_template(
    file: io.BufferedReader, keywords: Any, comment_tags: Any, options: Any
) -> Iterator[tuple[Any, ...]]:
    """Extract from a template, which Django turns into gettext calls with the text between them blanked out."""
    source = templatize(file.read().decode())
    flat = "\n".join(line.strip() for line in source.split("\n"))
    yield from extract_python(io.BytesIO(flat.encode()), keywords, comment_tags, options)


def extracted() -> Catalog:
    """Catalogue of all translatable texts, by file, without line numbers: they change with every edit."""
    catalog = Catalog(fuzzy=False)
    for folder in (*ROOMS, "templates"):
        for name, _line, message, comments, context in extract_from_dir(
            BASE_DIR / folder, METHODS, keywords=KEYWORDS, comment_tags=("Translators:",)
        ):
            where: Any = (f"{folder}/{name}", None)
            catalog.add(message, locations=[where], auto_comments=comments, context=context)
    return catalog


def po_files() -> list[Path]:
    return sorted(LOCALE_DIR.glob("*/LC_MESSAGES/django.po"))


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name)


def update(path: Path, template: Catalog) -> None:
    catalog = read(path)
    catalog.update(template, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    written = io.BytesIO()
    write_po(written, catalog, sort_by_file=True, include_lineno=False, width=110)
    lines = written.getvalue().decode().splitlines(keepends=True)
    # Leave out headers that change with every run or say nothing
    path.write_text("".join(line for line in lines if not line.startswith(UNKEPT)))


if __name__ == "__main__":
    everything = extracted()
    for file in po_files():
        update(file, everything)
