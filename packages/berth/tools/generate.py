"""Write `berth.api.shapes` and `berth.api.calls` from Berth's OpenAPI schema (JSON on standard input).

`make client` runs it. It knows what drf-spectacular writes for Berth, and stops at anything else. A general generator
writes 67,000 lines in 448 files for this schema, as each operation is there four times and each shape is a class that
copies its fields. Here a shape is a TypedDict, and an operation is a function that returns a `Call`, which one method
of `Client` and one of `AsyncClient` send.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Json = Mapping[str, Any]
TARGET = Path(__file__).parents[1] / "src" / "berth" / "api"
HEAD = '"""{what}\n\nWritten by `make client` from the API\'s schema: change that, not this file.\n"""\n\n'
PREFIX = "/api/v1/"
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
JSON_BODY = "application/json"
# First words of summaries: verbs of what is read, and what is no verb of what is written.
READING, NOUNS = {"Download", "Search"}, {"A", "An", "The", "Address"}


class Shapes:
    """Types of the schema's components, in Python."""

    def __init__(self, components: Json) -> None:
        self.components = components

    def type_of(self, schema: Json) -> str:
        name = self._bare(schema)
        return f"{name} | None" if schema.get("nullable") and not name.endswith("None") else name

    def _bare(self, schema: Json) -> str:
        if "$ref" in schema:
            return self._named(schema["$ref"].rsplit("/", 1)[-1])
        if "enum" in schema:
            return f"Literal[{', '.join(map(repr, schema['enum']))}]"
        if several := schema.get("oneOf") or schema.get("allOf"):
            return " | ".join(dict.fromkeys(self.type_of(each) for each in several))
        match schema.get("type"):
            case "array":
                return f"list[{self.type_of(schema['items'])}]"
            case "object":
                return f"dict[str, {self.type_of(schema.get('additionalProperties') or {})}]"
            case None:
                return "Any"
            case plain:
                return PLAIN[plain]

    def _named(self, name: str) -> str:
        component = self.components[name]
        if component.get("enum") == [None]:
            return "None"
        return self.page_of(component) or (name if "properties" in component else self._bare(component))

    def page_of(self, component: Json) -> str | None:
        """Return `Page[…]` for one page of a list, which has no fields of its own."""
        fields = component.get("properties", {})
        if set(fields) != {"results", "next"}:
            return None
        return f"Page[{self.type_of(fields['results']['items'])}]"

    def classes(self) -> Iterator[str]:
        for name, component in sorted(self.components.items()):
            if "properties" not in component or self.page_of(component):
                continue
            required = set(component.get("required", ()))
            yield self._class(name, component["properties"], required)

    def _class(self, name: str, fields: Json, required: set[str]) -> str:
        types = {
            field: self.type_of(schema) if field in required else f"NotRequired[{self.type_of(schema)}]"
            for field, schema in fields.items()
        }
        return typed_dict(name, types)


def typed_dict(name: str, types: Mapping[str, str], **options: bool) -> str:
    given = "".join(f", {option}={value}" for option, value in options.items())
    if not any(keyword.iskeyword(field) for field in types):
        lines = (f"    {field}: {kind}" for field, kind in types.items())
        return f"class {name}(TypedDict{given}):\n" + "\n".join(lines)
    pairs = ", ".join(f"{field!r}: {quoted(kind)}" for field, kind in types.items())
    return f"{name} = TypedDict({name!r}, {{{pairs}}}{given})"


def quoted(kind: str) -> str:
    """Return a type that may name a later class; unlike those in a class body, it is evaluated at once."""
    return kind if re.fullmatch(r"(NotRequired\[)?(str|int|float|bool)( \| None)?\]?", kind) else repr(kind)


class Calls:
    """Functions that describe requests."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes

    def functions(self, paths: Json) -> Iterator[str]:
        for path, methods in sorted(paths.items()):
            for method, operation in methods.items():
                yield self._function(path, method, operation)

    def _function(self, path: str, method: str, operation: Json) -> str:
        name, query = operation["operationId"], self._query(operation)
        places = re.findall(r"{(\w+)}", path)
        arguments = [f"{place}: str" for place in places]
        passed = [f'"{method.upper()}"', self._address(path, places)]
        if body := operation.get("requestBody"):
            argument, passing = self._body(body)
            arguments.append(argument)
            passed += passing
        text = ""
        if query:
            title = "".join(part.capitalize() for part in name.split("_")) + "Query"
            text = typed_dict(title, query, total=False) + "\n\n\n"
            arguments.append(f"**query: Unpack[{title}]")
            passed.append("query=query")
        doc = operation.get("summary") or operation.get("description", name).splitlines()[0].rstrip(".")
        return (
            f"{text}def {name}({', '.join(arguments)}) -> Call[{self._answer(operation)}]:\n"
            f'    """{with_a_verb(method, doc)}."""\n    return Call({", ".join(passed)})'
        )

    def _address(self, path: str, places: list[str]) -> str:
        short = path.removeprefix(PREFIX)
        if short == path:
            raise SystemExit(f"{path} is not below {PREFIX}")
        with_places = re.sub(r"{(\w+)}", r"{place(\1)}", short)
        return f'f"{with_places}"' if places else f'"{short}"'

    def _query(self, operation: Json) -> dict[str, str]:
        found = (each for each in operation.get("parameters", ()) if each["in"] == "query")
        return {each["name"]: self.shapes.type_of(each["schema"]) for each in found}

    def _body(self, body: Json) -> tuple[str, list[str]]:
        """Return the argument for the body, and how the call gets it: JSON, or content of another type."""
        if (as_json := body["content"].get(JSON_BODY)) is None:
            kind = next(iter(body["content"]))
            return "content: Content", ["content=content", f'content_type="{kind}"']
        optional = "" if body.get("required") else " | None = None"
        return f"body: {self.shapes.type_of(as_json['schema'])}{optional}", ["body=body"]

    def _answer(self, operation: Json) -> str:
        """Return the type of the first success: JSON if there is some, else text or bytes."""
        answers = (answer for status, answer in operation["responses"].items() if status.startswith("2"))
        for content in (answer["content"] for answer in answers if answer.get("content")):
            if JSON_BODY in content:
                return self.shapes.type_of(content[JSON_BODY]["schema"])
            return "bytes" if next(iter(content.values()))["schema"].get("format") == "binary" else "str"
        return "None"


def with_a_verb(method: str, summary: str) -> str:
    """Return a summary that begins with a verb. In the API, those of what is read are noun phrases: “One job”."""
    first = summary.split(maxsplit=1)[0]
    if first in READING or (method != "get" and first not in NOUNS):
        return summary
    is_a_name = first[1:2].isupper()  # as GPU
    return f"Return {summary if is_a_name else summary[0].lower() + summary[1:]}"


def modules(schema: Json) -> dict[str, str]:
    """Return the text of each module, not yet formatted."""
    shapes = Shapes(schema["components"]["schemas"])
    classes = list(shapes.classes())
    functions = list(Calls(shapes).functions(schema["paths"]))
    shape_imports = (
        "from __future__ import annotations\n\nfrom typing import Any, Literal, NotRequired, TypedDict\n\n"
    )
    used = sorted(name for name in shapes.components if re.search(rf"\b{name}\b", "\n".join(functions)))
    call_imports = (
        "from __future__ import annotations\n\nfrom typing import Any, Literal, TypedDict, Unpack\n\n"
        f"from .call import Call, Content, Page, place\nfrom .shapes import {', '.join(used)}\n\n\n"
    )
    return {
        "shapes.py": HEAD.format(what="Shapes of what the API takes and answers.")
        + shape_imports
        + ("from .call import Page\n\n\n" if any("Page[" in text for text in classes) else "\n")
        + "\n\n\n".join(classes)
        + "\n",
        "calls.py": HEAD.format(what="Requests of the API, one function for each operation.")
        + call_imports
        + "\n\n\n".join(functions)
        + "\n",
    }


def formatted(text: str, name: str) -> str:
    """Return the text as `ruff format` and its sorting of imports leave it."""
    for command in (["check", "--fix", "--quiet", "--select", "I,F401"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(TARGET / name), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


def main() -> None:
    for name, text in modules(json.load(sys.stdin)).items():
        (TARGET / name).write_text(formatted(text, name))


if __name__ == "__main__":
    main()
