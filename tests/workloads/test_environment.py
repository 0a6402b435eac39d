"""Environment as a form's text: every value that a browser can send comes back as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workloads.pages.fields import EnvironmentField, lines_of_env

NAMES = st.text("AB_1", max_size=6).map("V{}".format)
LINES = st.one_of(st.sampled_from(["END", "END2", "", "A=1", "A<<END"]), st.text("aE ND=<\u2028", max_size=8))
VALUES = st.lists(LINES, min_size=1, max_size=4).map("\n".join)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_a_field_shows_is_read_as_the_same_values(values: dict[str, str]) -> None:
    field = EnvironmentField()
    text = lines_of_env(values)
    assert field.to_python(text) == field.to_python(text.replace("\n", "\r\n")) == values
    assert field.holds(values)
