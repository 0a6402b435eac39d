"""The pure difference, over many objects that nobody thought of."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal.configuration.difference import Key, Values, changes, plan

VALUES = st.sampled_from([None, True, False, 0, 1, 2, "", "a", [1]])
OBJECTS = st.dictionaries(
    st.tuples(st.sampled_from("abcd")),
    st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=3),
    max_size=4,
)
Objects = dict[Key, Values]


def carried_out(there: Objects, wanted: Objects, *, deletes_absent: bool) -> Objects:
    steps = plan(there, wanted, deletes_absent=deletes_absent)
    after = {key: values for key, values in there.items() if key not in steps.deleted}
    for key in (*steps.created, *steps.changed):
        old = after.get(key, {})
        after[key] = {**old, **{name: one.new for name, one in changes(old, wanted[key]).items()}}
    return after


@given(OBJECTS, OBJECTS, st.booleans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(
    there: Objects, wanted: Objects, deletes_absent: bool
) -> None:
    steps = plan(there, wanted, deletes_absent=deletes_absent)
    assert set(steps.created) == wanted.keys() - there.keys()
    assert set(steps.deleted) == (there.keys() - wanted.keys() if deletes_absent else set())
    assert set(steps.changed) == {
        key for key in wanted.keys() & there.keys() if changes(there[key], wanted[key])
    }

    after = carried_out(there, wanted, deletes_absent=deletes_absent)
    again = plan(after, wanted, deletes_absent=deletes_absent)
    assert (again.changed, again.created, again.deleted) == ((), (), ())
    for key in after.keys() - wanted.keys():
        assert after[key] == there[key]


def test_numbers_compare_as_in_json_and_truth_is_none() -> None:
    assert changes({"a": 1, "b": [1], "c": {"d": 1}}, {"a": 1.0, "b": [1.0], "c": {"d": 1.0}}) == {}
    assert set(changes({"a": 1, "b": 0, "c": {"d": True}}, {"a": True, "b": False, "c": {"d": 1}})) == set(
        "abc"
    )
