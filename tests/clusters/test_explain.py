"""What Berth makes of the messages of clusters: real ones (messages.yaml), and any text at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clusters.causes.scheduling import total_and_reasons
from clusters.explain import BY_CODE, TABLES, UNKNOWN, audience, diagnose, explain, hint, sentence
from clusters.models import UnknownCause

MESSAGES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("messages.yaml").read_text())
each_message = pytest.mark.parametrize(
    "message", MESSAGES, ids=[f"{n}-{m['code']}" for n, m in enumerate(MESSAGES)]
)


@each_message
def test_a_real_message_is_recognised_with_its_data(message: dict[str, Any]) -> None:
    diagnosis = diagnose(message["source"], message["text"])
    assert (diagnosis.code, diagnosis.known) == (message["code"], True)
    assert message.get("data", {}).items() <= diagnosis.data.items()


@each_message
def test_its_sentence_says_something_without_gaps(message: dict[str, Any]) -> None:
    diagnosis = diagnose(message["source"], message["text"])
    assert "?" not in sentence(diagnosis.code, diagnosis.data)
    assert "%(" not in sentence(diagnosis.code, diagnosis.data) + hint(diagnosis.code, diagnosis.data)


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
    assert (diagnosis.data["nodes"], diagnosis.data["total"], diagnosis.data["resource"]) == (
        2,
        9,
        "nvidia.com/gpu",
    )
    assert sentence(diagnosis.code, diagnosis.data) == (
        "No node has enough free GPUs: 2 of 9 nodes lack it. "
        "Others: 1 node lacks CPU, 1 node is in maintenance, 5 nodes are of another kind."
    )


def test_a_comma_inside_a_taint_does_not_end_a_reason() -> None:
    __, reasons = total_and_reasons(
        "0/3 nodes are available: 1 node(s) had untolerated taint {a: b, c}, 2 Insufficient memory."
    )
    assert [reason.text for reason in reasons] == [
        "node(s) had untolerated taint {a: b, c}",
        "Insufficient memory",
    ]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("container", "bash: jq: command not found"),
        ("container", "PermissionError: [Errno 13] Permission denied: 'results.csv'"),
        ("container", "HTTPError: 401 Client Error: Unauthorized for url: https://example.org/data"),
        ("container", "ValueError: insufficient samples to fit the model"),
        ("container", "RuntimeError: port 8080 is already allocated"),
        (
            "gpu",
            "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x1 (Reset) to 0x0 (None)",
        ),
        ("volume", "Mon Nov 16 09:12:44 2026: link eth0 is down"),
        ("node", "KubeletHasNoDiskPressure: kubelet has no disk pressure"),
        ("node", "KubeletHasSufficientMemory: kubelet has sufficient memory available"),
    ],
)
def test_words_that_causes_are_told_by_mean_nothing_elsewhere(source: str, text: str) -> None:
    assert diagnose(source, text).code == UNKNOWN


@pytest.mark.parametrize(
    ("source", "text", "code"),
    [
        (
            "volume",
            "mount: wrong fs type, bad option, bad superblock on 10.0.0.7:/export, missing codepage or helper program",
            "volume_driver_missing",
        ),
        (
            "volume",
            "mount: wrong fs type, bad option, bad superblock on /dev/rbd0, missing",
            "volume_damaged",
        ),
        ("volume", "mon.b on node-2 is down", "storage_unwell"),
        (
            "volume",
            'MountVolume.SetUp failed for volume "a": failed to sync secret cache: timed out waiting for the condition',
            "volume_mount_failed",
        ),
        (
            "container",
            'error mounting "/var/lib/1/home" to rootfs at "/home/me": no such file or directory: unknown',
            "volume_not_in_container",
        ),
        (
            "container",
            'OCI runtime create failed: mounting \\"/data\\" to rootfs caused: permission denied: unknown',
            "volume_not_in_container",
        ),
        (
            "container",
            "RuntimeError: unable to write to file </torch_41_2>: No space left",
            "shared_memory_full",
        ),
        ("gpu", "NVRM: Xid (PCI:0000:9b:00): 154, recovery action changed from 0x0 to 0x1", "gpu_stuck"),
        ("gpu", "NVRM: Xid (PCI:0000:9b:00): 137, pid=7, name=python, NVLink", "gpu_program_fault"),
        ("image", 'Failed to pull image "lab/tool:429": connection refused', "image_registry_unreachable"),
        (
            "image",
            'Failed to pull image "lab/tool:1.404": unexpected status: 503 Busy',
            "image_registry_unreachable",
        ),
        ("image", 'Failed to pull image "lab/tool:1": unexpected status code 429', "image_rate_limited"),
    ],
)
def test_causes_with_like_words_are_told_apart(source: str, text: str, code: str) -> None:
    assert diagnose(source, text).code == code


def test_memory_of_a_gpu_is_not_mistaken_for_memory() -> None:
    assert diagnose("container", "RuntimeError: CUDA error: out of memory").code == "gpu_out_of_memory"
    assert diagnose("container", "java.lang.OutOfMemoryError: Java heap space").code != "node_full"


def test_facts_join_the_data() -> None:
    assert diagnose("container", "OOMKilled", container="main").data == {"container": "main"}


def test_every_cause_has_a_code_of_its_own() -> None:
    codes = [cause.code for table in TABLES.values() for cause in table]
    assert len(codes) == len(set(codes))
    assert UNKNOWN not in codes
    assert all(code.isidentifier() and code == code.lower() for code in codes)


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_every_code_has_a_sentence_and_a_hint_even_without_data(code: str) -> None:
    assert sentence(code, {}).strip()
    assert hint(code, {}).strip().endswith((".", "!"))
    assert audience(code) in {"you", "admin"}


def test_a_code_that_nobody_knows_any_more_is_still_told() -> None:
    assert sentence("code_of_yesterday", {}) == "The cluster says: code_of_yesterday"


FRAGMENTS = [message["text"] for message in MESSAGES]


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


@given(also=st.text())
def test_reasons_stored_by_another_version_do_not_make_it_fail(also: str) -> None:
    assert sentence("insufficient_resource", {"nodes": 1, "total": 2, "resource": "cpu", "also": also})


@pytest.mark.django_db
class TestUnknown:
    def test_a_known_message_is_not_counted(self) -> None:
        explain("container", "OOMKilled")
        assert not UnknownCause.objects.exists()

    def test_it_is_shown_raw_and_counted_once_per_kind(self) -> None:
        first = explain("container", 'the flux capacitor "a" of node 17 is out of plutonium')
        explain("container", 'the flux capacitor "b" of node 4 is out of plutonium')
        assert (first.code, first.known) == (UNKNOWN, False)
        assert "flux capacitor" in sentence(first.code, first.data)
        row = UnknownCause.objects.get()
        assert (row.count, row.source) == (2, "container")

    def test_the_same_words_elsewhere_are_another_kind(self) -> None:
        explain("container", "flux")
        explain("volume", "flux")
        assert UnknownCause.objects.count() == 2

    def test_what_the_database_cannot_keep_is_left_out(self) -> None:
        explain("container", "flux \0 \ud800 " + "x" * 10_000)
        assert len(UnknownCause.objects.get().text) <= 2000
