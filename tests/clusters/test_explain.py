"""Tests of explanations for messages of clusters: real ones (messages.yaml), and any text at all."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusters.causes import health, ways
from clusters.causes.renamed import RENAMED
from clusters.causes.scheduling import total_and_reasons
from clusters.explain import BY_CODE, TABLES, UNKNOWN, audience, diagnose, hint, sentence

MESSAGES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("messages.yaml").read_text())


def test_real_messages_are_recognised_with_their_data() -> None:
    def as_it_should(message: dict[str, Any]) -> bool:
        told = diagnose(message["source"], message["text"])
        is_right = (told.code, told.known) == (message["code"], message["code"] != UNKNOWN)
        return is_right and message.get("data", {}).items() <= told.data.items()

    assert [message for message in MESSAGES if not as_it_should(message)] == []


def test_their_sentences_say_something_without_gaps() -> None:
    def said(message: dict[str, Any]) -> tuple[str, str]:
        told = diagnose(message["source"], message["text"])
        return sentence(told.code, told.data), hint(told.code, told.data)

    all_said = [said(message) for message in MESSAGES]
    assert [told for told, _hint in all_said if "?" in told] == []
    assert [told + advice for told, advice in all_said if "%(" in told + advice] == []


def test_several_reasons_are_counted_and_the_most_telling_one_comes_first() -> None:
    text = (
        "0/9 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable, "
        "5 node(s) didn't match Pod's node affinity/selector. preemption: 0/9 nodes are available: 9 Preemption is not "
        "helpful for scheduling."
    )
    total, reasons = total_and_reasons(text)
    assert total == 9
    assert [reason.nodes for reason in reasons] == [1, 2, 1, 5]
    diagnosis = diagnose("scheduling", text)
    assert diagnosis.code == "insufficient_resource"
    assert {"nodes": 2, "total": 9, "resource": "nvidia.com/gpu"}.items() <= diagnosis.data.items()
    assert sentence(diagnosis.code, diagnosis.data) == (
        "No node has enough free GPUs. "
        "Checked 9: 2 nodes lack GPUs, 1 node lacks CPU, 1 node is in maintenance, 5 do not fit."
    )


def test_a_rule_about_pods_is_more_telling_than_a_taint_and_the_nodes_of_other_pools_least() -> None:
    nodes = "0/9 nodes are available: {}, 5 node(s) didn't match Pod's node affinity/selector."
    tainted = "1 node(s) had untolerated taint {lab: x}"
    kept_off = f"{tainted}, 3 node(s) didn't match pod anti-affinity rules"
    assert diagnose("scheduling", nodes.format(tainted)).code == "node_tainted"
    told = diagnose("scheduling", nodes.format(kept_off))
    assert (told.code, told.data["nodes"]) == ("node_not_matching", 8)


def test_a_comma_inside_a_taint_does_not_end_a_reason() -> None:
    __, reasons = total_and_reasons(
        "0/3 nodes are available: 1 node(s) had untolerated taint {a: b, c}, 2 Insufficient memory."
    )
    texts = [reason.text for reason in reasons]
    assert texts == ["node(s) had untolerated taint {a: b, c}", "Insufficient memory"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CrashLoopBackOff: back-off 5m0s restarting failed container=main", "exited (again and again)"),
        ("The node was low on resource: imagefs.", "ran out of disk space"),
        ("Evicted", "ran out of room"),
        ("0/1 nodes are available: 1 cannot allocate all claims.", "enough free devices"),
    ],
)
def test_what_people_have_a_name_for_is_called_by_it(text: str, words: str) -> None:
    diagnosis = diagnose("container", text)
    assert words in sentence(diagnosis.code, diagnosis.data)


def test_facts_join_the_data() -> None:
    assert diagnose("container", "OOMKilled", container="main").data == {"container": "main"}


def test_there_are_few_causes_and_each_has_a_code_of_its_own() -> None:
    causes = {id(cause): cause for table in (*TABLES.values(), health.CAUSES) for cause in table}.values()
    told = {(cause.code, str(cause.sentence), str(cause.hint), cause.audience) for cause in causes}
    codes = [code for code, *__ in told]
    assert len(codes) == len(set(codes)) == len(BY_CODE)
    # What Berth finds by watching, and what reaches people past the cluster, are counted apart.
    apart = {cause.code for cause in (*health.CAUSES, *ways.CAUSES)}
    assert len(set(codes) - apart) <= 75
    assert len(apart) <= 30
    assert UNKNOWN not in codes
    assert all(code.isidentifier() and code == code.lower() for code in codes)


def test_a_code_of_an_earlier_version_is_told_as_what_it_is_now() -> None:
    assert not RENAMED.keys() & BY_CODE.keys()
    assert set(RENAMED.values()) <= BY_CODE.keys()
    assert sentence("exited", {"exit_code": "3"}) == "Its program exited (exit code 3)."
    assert audience("image_denied") == "you"
    told = sentence("gpu_memory_short", {"nodes": 2, "total": 8, "also": "gpu_cores_short:1: gone:9:"})
    assert told == (
        "No GPU has enough free memory for this request. Checked 8: 2 GPUs lack free memory, 1 GPU lacks free compute."
    )


def test_every_code_has_a_sentence_and_a_hint_even_without_data() -> None:
    codes = {*BY_CODE, *RENAMED}
    assert [code for code in codes if not sentence(code, {}).strip()] == []
    assert [code for code in codes if not hint(code, {}).strip().endswith((".", "!", "?"))] == []
    assert {audience(code) for code in codes} <= {"you", "admin"}


def test_a_code_that_nobody_knows_any_more_is_still_told() -> None:
    assert sentence("code_of_yesterday", {}) == "Message from the cluster: code_of_yesterday"


FRAGMENTS = [message["text"] for message in MESSAGES]


@settings(max_examples=50, deadline=None)
@given(
    source=st.sampled_from([*TABLES, "elsewhere"]),
    text=st.one_of(
        st.text(),
        st.lists(st.sampled_from(FRAGMENTS), max_size=3).map(" ".join),
        st.sampled_from(FRAGMENTS).flatmap(lambda t: st.integers(0, len(t)).map(lambda n: t[n:] + t[:n])),
        st.from_regex(
            r"0/[0-9]{1,30} nodes are available: ([0-9]{1,30} [\w(){}:, '/.%]{0,40},? ?){0,4}", fullmatch=True
        ),
    ),
)
def test_no_text_whatever_makes_it_fail(source: str, text: str) -> None:
    diagnosis = diagnose(source, text)
    assert sentence(diagnosis.code, diagnosis.data)
    assert hint(diagnosis.code, diagnosis.data)
    assert all(isinstance(value, str | int) for value in diagnosis.data.values())
    assert "\0" not in str(diagnosis.data)


ANYTHING = r"(?:\\[SwWD]|\.|\[\^[^\]]*\])[*+]\??"


def test_no_rule_looks_for_anything_after_anything() -> None:
    """Refuse two unbounded repeats in a row: a program that repeats the word before them would block a worker."""
    twice = re.compile(rf"{ANYTHING}(?:\(\?:)?{ANYTHING}")
    causes = [cause for table in TABLES.values() for cause in table]
    assert [cause.code for cause in causes if twice.search(cause.pattern + "\n" + cause.details)] == []


@settings(max_examples=30, deadline=None)
@given(also=st.text())
def test_reasons_stored_by_another_version_do_not_make_it_fail(also: str) -> None:
    assert sentence("insufficient_resource", {"nodes": 1, "total": 2, "resource": "cpu", "also": also})
