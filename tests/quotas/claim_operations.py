"""Operations on claims with random arguments: `test_claims_at_once` has a method for each."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Operation = tuple[str, dict[str, Any]]


def of(name: str, /, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Operation]:
    return st.tuples(st.just(name), st.fixed_dictionaries(arguments))


WHICH = st.integers(0, 3)
POOLS = st.integers(0, 2)
NODES = st.integers(0, 2)
ONE_OF_TWO = st.integers(0, 1)
TENANT = st.integers(1, 2)
MOST = st.sampled_from([None, 2, 3, 5])
USUALLY = st.sampled_from([True, True, True, False])
REQUEST = of(
    "request",
    who=st.integers(0, 2),
    pool=POOLS,
    gpus=st.sampled_from([1, 1, 1, 2, 3]),
    nodes=st.sampled_from([1, 1, 2, 2, 3]),
    priority=ONE_OF_TWO,
    minutes=st.sampled_from([None, None, 30, 240]),
    holder=st.integers(0, 11),
)
RELEASE = of("release", which=WHICH)
WORK = of("work")
OPEN_OR_CLOSE = of("open_or_close", pool=POOLS, is_open=USUALLY)
OPERATIONS = st.one_of(
    *[REQUEST] * 5,
    *[WORK] * 3,
    *[RELEASE] * 3,
    of("renew", which=WHICH),
    of("send_back", which=WHICH),
    of("doubt", which=WHICH),
    of("confirm_end", which=WHICH),
    of("change_quota", who=TENANT, pool=POOLS, gpus=st.integers(0, 6), borrows=st.integers(0, 4)),
    of("change_limit", who=TENANT, cores=MOST, workspaces=MOST, person_gpus=MOST),
    of("book", who=TENANT, pool=POOLS, begins=st.sampled_from([-5, 5, 60]), units=st.integers(1, 3)),
    of("cancel", which=WHICH),
    *[of("reclaims_are_due")] * 2,
    *[of("goes_down", which=WHICH)] * 3,
    *[of("process_dies")] * 2,
    *[OPEN_OR_CLOSE] * 2,
    of("node_changes", node=NODES, ready=USUALLY, gpus=st.sampled_from([4, 4, 4, 2, 0])),
    of("pod_is_seen", which=WHICH),
    of("pods_are_gone"),
    of("time_goes_by"),
    of("is_settled_by_any_clock", which=WHICH, minutes=st.integers(-10_000, 10_000)),
    of("worker_dies"),
)
