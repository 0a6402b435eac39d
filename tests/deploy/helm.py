"""Templates of the chart, rendered as Helm renders them: https://pkg.go.dev/text/template and Helm's functions.

It knows the actions and functions that deploy/chart uses, and raises on all others.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import yaml

ACTION = re.compile(r"\{\{(-?)\s*(/\*.*?\*/|(?:\"(?:[^\"\\]|\\.)*\"|[^\"])*?)\s*(-?)\}\}", re.DOTALL)
TOKEN = re.compile(r"\s*(\"(?:[^\"\\]|\\.)*\"|:=|[()|,=]|[^\s()|,=:]+)")
OPENERS = {"if", "with", "range", "define"}

Node = Any  # text, or a tuple: action, rest of its words, children, children of its `else`
Scope = dict[str, Any]


def merged(defaults: Any, values: Any) -> Any:
    """Return the defaults with the values over them, as Helm merges: maps by key, all else as a whole."""
    if not (isinstance(defaults, dict) and isinstance(values, dict)):
        return values
    return defaults | {key: merged(defaults.get(key), value) for key, value in values.items()}


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def to_yaml(value: Any) -> str:
    return str(yaml.safe_dump(value, default_flow_style=False, allow_unicode=True, width=1000)).rstrip("\n")


def url_parse(text: str) -> dict[str, Any]:
    parts = urlsplit(text)
    return {"scheme": parts.scheme, "host": parts.netloc, "hostname": parts.hostname, "path": parts.path}


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": lambda *values: next((value for value in values if not value), values[-1]),
    "append": lambda values, value: [*values, value],
    "concat": lambda *lists: [value for values in lists for value in values],
    "default": lambda fallback, value: value or fallback,
    "dict": lambda *pairs: dict(zip(pairs[::2], pairs[1::2], strict=True)),
    "gt": lambda one, other: one > other,
    "int": int,
    "join": lambda separator, values: separator.join(map(shown, values)),
    "list": lambda *values: list(values),
    "merge": lambda *maps: {key: value for one in reversed(maps) for key, value in one.items()},
    "ne": lambda one, other: one != other,
    "nindent": lambda width, text: "\n" + "\n".join(" " * width + line for line in text.split("\n")),
    "not": lambda value: not value,
    "or": lambda *values: next((value for value in values if value), values[-1]),
    "printf": lambda form, *values: form % values,
    "quote": lambda value: json.dumps(shown(value), ensure_ascii=False),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toYaml": to_yaml,
    "trim": str.strip,
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "uniq": lambda values: list(dict.fromkeys(values)),
    "urlParse": url_parse,
}


def parsed(text: str) -> list[Node]:
    """Return the tree of a template."""
    root: list[Node] = []
    stack = [root]
    end, trims = 0, False
    for found in ACTION.finditer(text):
        before = text[end : found.start()]
        before = before.lstrip() if trims else before
        stack[-1].append(before.rstrip() if found[1] else before)
        end, trims = found.end(), bool(found[3])
        word, _, rest = found[2].partition(" ")
        if word == "end":
            stack.pop()
        elif word == "else":
            stack.pop()
            stack.append(stack[-1][-1][3])
            if rest:
                raise NotImplementedError(found[0])
        elif word in OPENERS:
            stack[-1].append((word, rest, [], []))
            stack.append(stack[-1][-1][2])
        elif not word.startswith("/*"):
            stack[-1].append(("print", found[2], [], []))
    root.append(text[end:].lstrip() if trims else text[end:])
    if len(stack) != 1:
        raise ValueError("An action has no end.")
    return root


class Chart:
    """Templates that may include each other."""

    def __init__(self, templates: dict[str, str]) -> None:
        self._trees = {name: parsed(text) for name, text in templates.items()}
        self._defined = {
            json.loads(node[1]): node[2]
            for tree in self._trees.values()
            for node in tree
            if isinstance(node, tuple) and node[0] == "define"
        }

    def render(self, values: dict[str, Any], namespace: str) -> dict[str, str]:
        """Return each template's text. A name with `_` at its start holds definitions alone."""
        data = {"Values": values, "Release": {"Namespace": namespace}}
        names = (name for name in self._trees if not name.startswith("_"))
        return {name: self._text(self._trees[name], data, {"$": data}) for name in names}

    def _text(self, tree: list[Node], dot: Any, scope: Scope) -> str:
        return "".join(
            node if isinstance(node, str) else "".join(self._act(node, dot, scope)) for node in tree
        )

    def _act(self, node: Node, dot: Any, scope: Scope) -> Iterator[str]:
        action, words, then, otherwise = node
        if action == "define":
            return
        names, sign, pipe = self._assigned(words)
        value = self._value(pipe, dot, scope)
        if action == "print" and not sign:
            yield shown(value)
        elif action == "print":
            scope[names[0]] = value  # as in Go, `=` changes the variable of the block around
        elif action == "range":
            pairs = sorted(value.items()) if isinstance(value, dict) else list(enumerate(value or ()))
            for pair in pairs:
                yield self._text(then, pair[1], scope | dict(zip(names, pair, strict=False)))
        elif value:
            yield self._text(then, value if action == "with" else dot, scope)
        else:
            yield self._text(otherwise, dot, scope)

    @staticmethod
    def _assigned(words: str) -> tuple[list[str], str, list[str]]:
        """Return the variables that an action sets, its sign, and the words of its pipeline."""
        tokens = TOKEN.findall(words)
        sign = next((token for token in tokens if token in (":=", "=")), "")
        at = tokens.index(sign) + 1 if sign else 0
        return [token for token in tokens[: max(at - 1, 0)] if token != ","], sign, tokens[at:]

    def _value(self, tokens: list[str], dot: Any, scope: Scope) -> Any:
        """Return the value of a pipeline, and take its tokens up to a closing parenthesis."""
        piped: list[Any] = []
        while True:
            words: list[Any] = []
            first = tokens[0]
            while tokens and tokens[0] not in ("|", ")"):
                words.append(self._operand(tokens, dot, scope))
            words += piped
            if first == "include":
                value = self._text(self._defined[words[1]], words[2], {"$": words[2]})
            else:
                value = words[0](*words[1:]) if first in FUNCTIONS else words[0]
            if not tokens or tokens[0] == ")":
                return value
            tokens.pop(0)
            piped = [value]

    def _operand(self, tokens: list[str], dot: Any, scope: Scope) -> Any:
        token = tokens.pop(0)
        if token == "(":
            value = self._value(tokens, dot, scope)
            tokens.pop(0)
            following = tokens.pop(0) if tokens and tokens[0].startswith(".") else ""
            return self._field(value, following)
        if token.startswith('"') or token in ("true", "false") or token.isdigit():
            return json.loads(token)
        if token.startswith("."):
            return self._field(dot, token)
        if token.startswith("$"):
            name, _, path = token.partition(".")
            return self._field(scope[name], path)
        return token if token == "include" else FUNCTIONS[token]

    @staticmethod
    def _field(value: Any, path: str) -> Any:
        for key in filter(None, path.split(".")):
            value = value.get(key)
        return value
