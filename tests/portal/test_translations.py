"""Templates: all visible words can be translated."""

from __future__ import annotations

import re

from django.template.base import Lexer, TokenType

from portal.environment import BASE_DIR

TEMPLATES = sorted((BASE_DIR / "templates").rglob("*.html"))
# Words that are the same in every language.
NAMES = {
    "Berth",
    "GiB",
    "MiB",
    "GPU",
    "GPUs",
    "CPU",
    "CUDA",
    "SSH",
    "API",
    "JupyterLab",
    "Jupyter",
    "VS Code",
    "Linux",
    "macOS",
    "Windows",
    "Xid",
    "h",
    "s",
    "ssh-ed25519 AAAA",
}
SHOWN_ATTRIBUTES = re.compile(r'\b(?:title|alt|placeholder|aria-label)="([^"]*)"')
HIDDEN = re.compile(r"<(code|kbd|pre|script|style|svg|title)\b.*?</\1>", re.DOTALL)
ATTRIBUTE = re.compile(r'[a-z-]+="[^"]*"')  # outside of its tag, where a block fills it
OF_CLASSES = ("page_class", "coltype", "bodyclass")  # blocks that hold names of CSS classes
TAG = re.compile(r"""<(?:[^>"]|"[^"]*")*>""")


def test_no_template_speaks_english_alone() -> None:
    found = {str(path): words for path in TEMPLATES if (words := untranslatable(path.read_text()))}
    assert found == {}, "put it in {% translate %} or {% blocktranslate %}"


def untranslatable(source: str) -> list[str]:
    """Return the words of a template that nothing translates."""
    shown, inside, blocks = "", False, list[str]()
    for token in Lexer(source).tokenize():
        first = token.contents.split()[0] if token.contents.split() else ""
        if token.token_type == TokenType.BLOCK and first in ("blocktranslate", "blocktrans"):
            inside = True
        elif token.token_type == TokenType.BLOCK and first in ("endblocktranslate", "endblocktrans"):
            inside = False
        elif token.token_type == TokenType.BLOCK and first == "block":
            blocks.append(token.contents.split()[1])
        elif token.token_type == TokenType.BLOCK and first == "endblock":
            blocks.pop()
        elif token.token_type == TokenType.TEXT and not inside and not (blocks and blocks[-1] in OF_CLASSES):
            shown += token.contents
        elif token.token_type == TokenType.VAR:
            shown += "…"
    attributes = SHOWN_ATTRIBUTES.findall(shown)
    plain = ATTRIBUTE.sub("", TAG.sub("\n", HIDDEN.sub("\n", shown.replace("&nbsp;", " ")))).split("\n")
    pieces = (piece.strip(" ·…():,./×–\t") for piece in [*attributes, *plain])
    return [piece for piece in pieces if re.search(r"[A-Za-z]", piece) and piece not in NAMES]
