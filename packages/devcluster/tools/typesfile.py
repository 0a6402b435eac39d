"""Generator of types.json from Kubernetes' published OpenAPI documents and the Go files of its API types.

    python tools/typesfile.py OPENAPI.json … -- TYPES.go … > src/devcluster/typed/types.json

OpenAPI has the fields of a type and how lists merge on the server; only the Go files have which empty fields are left
out, how strategic patches merge, and the numbers of protobuf. `schema` explains the words of a field.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]

SOURCE = "Facts of Kubernetes 1.36's public API types (github.com/kubernetes/kubernetes, Apache License 2.0)."
_SCALARS = {"int-or-string": "IntOrString", "byte": "bytes", "double": "float64", "date-time": "Time"}
_ONE_PIECE = {"FieldsV1", "RawExtension", "JSON"}
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_FIELD = re.compile(r'^\t(?:(\w+) +)?([\w.*\[\]]+) +`json:"([^"]*)"(.*)`', re.M)


def short(name: str) -> str:
    """Return `core.v1.Pod` for `#/components/schemas/io.k8s.api.core.v1.Pod`."""
    parts = name.rpartition("/")[2].split(".")
    if parts[-1] in ("Quantity", "IntOrString", "Time", "MicroTime", *_ONE_PIECE):
        return parts[-1]
    return ".".join(parts[-3:])


class GoTypes:
    """Structs of Go files, with the tags of their fields."""

    def __init__(self, files: list[Path]):
        self.structs: dict[str, list[tuple[str, str, str, str]]] = {}
        for file in files:
            package = f"{file.parts[-3]}.{file.parts[-2]}"
            for name, body in _STRUCT.findall(file.read_text()):
                self.structs[f"{package}.{name}"] = _FIELD.findall(body)

    def fields(self, name: str, numbers: str = "", embedded: str = "") -> Iterator[tuple[str, Json]]:
        """Yield (JSON name, facts) of every field, those of embedded structs included."""
        for go_name, go_type, tag, more in self.structs.get(name, []):
            json_name, _, options = tag.partition(",")
            number = re.search(r'protobuf:"\w+,(\d+)', more)
            at = f"{numbers}.{number[1]}".lstrip(".") if number else ""
            if not go_name and "inline" in options and number:
                package = "core.v1" if go_type.startswith("v1.") else name.rpartition(".")[0]
                yield from self.fields(f"{package}.{go_type.rpartition('.')[2]}", at, go_type)
                continue
            strategy = re.search(r'patchStrategy:"([^"]*)"', more)
            key = re.search(r'patchMergeKey:"([^"]*)"', more)
            yield (
                json_name,
                {
                    "go": go_type,
                    "number": at,
                    "embedded": embedded,
                    "strategy": strategy[1].split(",") if strategy else [],
                    "key": key[1] if key else "",
                    "always": "omitempty" not in options,
                    "omitzero": "omitzero" in options,
                },
            )


def shape(prop: Json) -> str:
    """Return the type of a property, in Go's notation."""
    if ref := prop.get("$ref") or prop.get("allOf", [{}])[0].get("$ref"):
        return short(ref)
    if prop.get("type") == "array":
        return "[]" + shape(prop["items"])
    if prop.get("type") == "object":
        return (
            "map[string]" + shape(prop["additionalProperties"]) if "additionalProperties" in prop else "any"
        )
    if prop.get("format") in _SCALARS:
        return _SCALARS[prop["format"]]
    if prop.get("type") == "integer":
        return str(prop.get("format", "int64"))
    return {"boolean": "bool", "number": "float64"}.get(prop.get("type", ""), str(prop.get("type", "any")))


def words(owner: str, prop: Json, go: Json, required: bool) -> str:
    """Describe one field in a line: its type, then its options."""
    named, kind = go.get("go", "").lstrip("*"), shape(prop)
    plain = named.lower() == named or named.rpartition(".")[2] == kind.rpartition(".")[2] or named[:1] in "[m"
    if named and not plain:
        package = owner.split(".")[1] if "." not in named else named.split(".")[0].replace("metav1", "v1")
        kind = f"{package}.{named.rpartition('.')[2]}:{kind}"
    found = [("*" if go.get("go", "").startswith("*") else "") + kind]
    found += [go["number"]] if go.get("number") else []
    found += [f"in={go['embedded']}"] if go.get("embedded") else []
    struct = kind[0].islower() and "." in kind and ":" not in kind and not found[0].startswith("*")
    time_ = kind in ("Time", "MicroTime") and not found[0].startswith("*")
    if go.get("always", False) or ((struct or time_) and not go.get("omitzero")):
        found.append("always")
    if required:
        found.append("required")
    listed = prop.get("x-kubernetes-list-type", "")
    if listed == "map":
        found.append("map=" + ",".join(prop["x-kubernetes-list-map-keys"]))
    elif listed == "set":
        found.append("set")
    if "x-kubernetes-map-type" in prop:
        found.append(prop["x-kubernetes-map-type"])
    if "merge" in go.get("strategy", []):
        found.append("merge" + (f"={go['key']}" if go["key"] else ""))
    found += [s for s in go.get("strategy", []) if s in ("retainKeys", "replace")]
    if prop.get("default") not in (None, "", 0, False, {}):
        found.append(f"default={prop['default']}")
    return " ".join(found)


def types(documents: list[Json], go: GoTypes) -> dict[str, Json]:
    schemas: dict[str, Json] = {}
    for document in documents:
        schemas |= {short(k): v for k, v in document["components"]["schemas"].items()}
    found: dict[str, Json] = {}
    for name, schema in sorted(schemas.items()):
        if "properties" not in schema or "List" in name.rpartition(".")[2][-4:]:
            continue
        facts, needed = dict(go.fields(name)), schema.get("required", [])
        found[name] = {
            prop: words(name, value, facts.get(prop, {}), prop in needed)
            for prop, value in schema["properties"].items()
        }
        if schema.get("x-kubernetes-map-type") == "atomic":
            found[name]["."] = "atomic"
    return found


def main() -> None:
    split = sys.argv.index("--")
    documents = [json.loads(Path(path).read_text()) for path in sys.argv[1:split]]
    found = types(documents, GoTypes([Path(path) for path in sys.argv[split + 1 :]]))
    lines = [f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in found.items()]
    print("{" + ",\n".join([f'"": {json.dumps(SOURCE)}', *lines]) + "}")


if __name__ == "__main__":
    main()
