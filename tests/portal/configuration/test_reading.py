"""Reading the file's YAML: values with their lines, and everything refused that is more than plain values."""

from __future__ import annotations

import pytest

from accounts.errors import Invalid
from portal.configuration.reading import read

TEXT = """# kept in git
pools:
- slug: a100   # a comment
  weight: 0.5
  node_labels: {zone: "1", night: '12:30'}
  ecc: null
  is_open: no
- {slug: "010", opens: 12:30, units_per_gpu: 7}
"""


def test_values_have_their_types_and_their_lines() -> None:
    document = read(TEXT)
    assert document.values == {
        "pools": [
            {
                "slug": "a100",
                "weight": 0.5,
                "node_labels": {"zone": "1", "night": "12:30"},
                "ecc": None,
                "is_open": False,
            },
            {"slug": "010", "opens": "12:30", "units_per_gpu": 7},
        ]
    }
    assert document.line("pools", 0, "weight") == 4
    assert document.line("pools", 1, "opens") == document.line("pools", 1) == 8
    assert document.line("pools", 0, "tolerations") == 3  # of the pool, which has none
    assert read("").values == read("---\n").values == {}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: [1\n", 2),
        ("a: b: c", 1),
        ("\ta: 1", 1),
        ("x: 1\na: !!python/object/apply:os.system ['id']", 2),
        ("a: &x [1]\nb: *x", 1),
        ("a: 1\n<<: *x", 2),
        ("a: 1\nb: 2\na: 3", 3),
        ("[1, 2]", 1),
        ("--- 1\n--- 2", 1),
        ("a: " + "[" * 5000, 1),
        ("a:\n  b: " + "9" * 9000, 2),
        ("a:\n  b: 0x" + "f" * 5000, 2),
        ("a: 9223372036854775808", 1),
        ("a: .nan", 1),
        ("a:\n- -.inf", 2),
        ("a: 1.0e+999", 1),
        ("? {a: 1}\n: 2", 1),
        (b"a: \xff", 1),
        ("a: \x00", 1),
        ("a\x1b", 1),
    ],
)
def test_all_else_is_refused_with_its_line(text: str | bytes, line: int) -> None:
    with pytest.raises(Invalid) as refused:
        read(text)
    assert list(refused.value.fields) == [f"line {line}"]
