"""The client's requests and shapes are those of the API's schema."""

from __future__ import annotations

import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings
from drf_spectacular.drainage import GENERATOR_STATS

import berth
from portal.schema import schema_in

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = spec_from_file_location("generate", ROOT / "packages/berth/tools/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_they_are_as_make_client_writes_them(generate: ModuleType) -> None:
    schema = schema_in("en")
    assert not GENERATOR_STATS, "the schema has warnings: see manage.py spectacular --file /dev/null"
    for name, text in generate.modules(schema).items():
        message = f"{name} is not as the schema says: run `make client`"
        assert (generate.TARGET / name).read_text() == generate.formatted(text, name), message


def test_types_follow_the_schema(generate: ModuleType) -> None:
    shapes = generate.Shapes(
        {
            "Phase": {"enum": ["on", "off"]},
            "Null": {"enum": [None]},
            "Row": {
                "properties": {"from": {"type": "string"}, "to": {"$ref": "#/Row", "nullable": True}},
                "required": ["to"],
            },
            "Rows": {"properties": {"results": {"type": "array", "items": {"$ref": "#/Row"}}, "next": {}}},
        }
    )
    expected = {
        "Literal['on', 'off'] | None": {"oneOf": [{"$ref": "#/Phase"}, {"$ref": "#/Null"}], "nullable": True},
        "dict[str, float]": {"type": "object", "additionalProperties": {"type": "number"}},
        "Page[Row]": {"$ref": "#/Rows"},
        "Any": {},
    }
    assert {kind: shapes.type_of(schema) for kind, schema in expected.items()} == {
        kind: kind for kind in expected
    }
    assert list(shapes.classes()) == [
        "Row = TypedDict('Row', {'from': NotRequired[str], 'to': 'Row | None'})"
    ]


@pytest.mark.parametrize(
    ("method", "summary", "doc"),
    [
        ("get", "One job", "Return one job"),
        ("get", "GPU-hours used", "Return GPU-hours used"),
        ("get", "Download a file", "Download a file"),
        ("post", "A ticket", "Return a ticket"),
        ("post", "Cancel a job", "Cancel a job"),
    ],
)
def test_what_a_call_does_begins_with_a_verb(
    generate: ModuleType, method: str, summary: str, doc: str
) -> None:
    assert generate.with_a_verb(method, summary) == doc


def test_server_and_client_have_one_version() -> None:
    versions = [
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]["version"]
        for folder in (".", "packages/berth")
    ]
    assert versions == [settings.VERSION, berth.VERSION]
