"""Which images are warmed on which nodes, on values alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from clusters.references import complete
from workspaces.warming.deciding import (
    AGAIN_AFTER,
    MOST_AT_ONCE,
    MOST_FAILURES,
    Named,
    Pull,
    is_due_again,
    likeliest,
    next_pulls,
)

A, B, C, D = (Named(slug=slug) for slug in "abcd")
IMAGES, NODES = st.sampled_from("abc"), st.sampled_from(["n1", "n2", "n3", "n4"])
PULLS = st.sets(st.builds(Pull, IMAGES, NODES), max_size=8)


def test_classes_come_first_then_what_most_people_used_then_templates() -> None:
    recent = [(C, 2), (D, 7), (A, 9)]
    assert likeliest([(B, 1), (A, 1), (B, 3)], recent, [Named("e"), C, Named("f"), Named("f")]) == [
        B, A, D, C, Named("f"), Named("e"),
    ]  # fmt: skip


def test_a_launch_without_an_image_names_none() -> None:
    assert likeliest([(Named.of({}), 5)], [], [Named.of({"image": "a", "image_reference": None})]) == [A]


def test_a_reference_is_found_as_nodes_write_it() -> None:
    digest = "sha256:" + "0" * 64
    assert complete("ubuntu") == "docker.io/library/ubuntu:latest"
    assert complete("index.docker.io/team/image:1") == complete("team/image:1") == "docker.io/team/image:1"
    assert complete(f"a.example:5000/b:1@{digest}") == f"a.example:5000/b@{digest}"
    assert complete("<none>@<none>") == "docker.io/library/<none>@<none>"  # of an image without a name


@given(
    references=st.lists(IMAGES, unique=True),
    nodes=st.lists(NODES, unique=True),
    there=PULLS,
    ready=PULLS,
    under_way=PULLS,
    given_up=st.dictionaries(
        st.builds(Pull, IMAGES, NODES), st.sampled_from(["", "image_denied"]), max_size=8
    ),
    in_pool=st.integers(0, 5),
)
def test_few_are_pulled_at_once_and_none_that_is_there_or_on_its_way(
    references: list[str],
    nodes: list[str],
    there: set[Pull],
    ready: set[Pull],
    under_way: set[Pull],
    given_up: dict[Pull, str],
    in_pool: int,
) -> None:
    chosen = next_pulls(
        references,
        nodes,
        there=there,
        ready=ready,
        under_way=under_way,
        given_up=given_up,
        in_pool=in_pool,
    )
    known = there | ready | under_way | set(given_up)
    assert len(set(chosen)) == len(chosen) <= max(0, MOST_AT_ONCE - in_pool)
    assert not set(chosen) & known
    assert all(pull.reference in references and pull.node in nodes for pull in chosen)
    failed = [pull.reference for pull, code in given_up.items() if code]
    refused = {one for one in references if failed.count(one) >= MOST_FAILURES}
    assert not refused & {pull.reference for pull in chosen}
    places = [(references.index(pull.reference), nodes.index(pull.node)) for pull in chosen]
    assert places == sorted(places)  # the likeliest image goes to all nodes first
    if len(chosen) < MOST_AT_ONCE - in_pool:  # nothing else was left to choose
        known |= set(chosen)
        assert all(Pull(one, node) in known for one in references if one not in refused for node in nodes)


MOMENTS = st.none() | st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 2), timezones=st.just(UTC))


@given(ready_at=MOMENTS, given_up_at=MOMENTS, is_there=st.booleans())
def test_what_ended_is_looked_at_again_after_a_while_unless_it_is_there(
    ready_at: datetime | None, given_up_at: datetime | None, is_there: bool
) -> None:
    def due(now: datetime) -> bool:
        return is_due_again(ready_at=ready_at, given_up_at=given_up_at, is_there=is_there, now=now)

    ended_at = given_up_at or ready_at
    if ended_at is None:
        assert not due(datetime(2027, 1, 1, tzinfo=UTC))  # open, or under way
    else:
        assert not due(ended_at + AGAIN_AFTER)
        assert due(ended_at + AGAIN_AFTER + timedelta(seconds=1)) is (bool(given_up_at) or not is_there)
