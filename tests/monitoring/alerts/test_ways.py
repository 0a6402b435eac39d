"""Exact requests for each way, and what counts as an answer. Signatures are computed anew by the vendors' rules."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest

from monitoring.alerts.posting import Answer
from monitoring.alerts.ways import Item, Message, Way, refused, request_for, sign

ID = UUID("0d0c2f5e-0000-4000-8000-000000000001")
AT = 1_764_280_800
ITEM = Item(
    "Critical: <lost> & *gone*", "gpu-1\n@all", "Look.", "https://berth.test/alerts/1/", {"code": "node_lost"}
)
MESSAGE = Message(ID, AT, ITEM.title, [ITEM], "zh-hans")


def body_of(way: Way, secret: str = "", address: str = "https://chat.test/hook") -> Any:
    return json.loads(request_for(way, address, secret, MESSAGE).body)


def test_a_webhook_is_signed_as_standard_webhooks_says() -> None:
    key = base64.b64encode(b"0123456789abcdef01234567").decode()
    request = request_for(Way.WEBHOOK, "https://hook.test/x", f"whsec_{key}", MESSAGE)
    signed = f"{ID}.{AT}.".encode() + request.body
    digest = hmac.new(b"0123456789abcdef01234567", signed, hashlib.sha256).digest()
    assert request.headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    assert request.headers["webhook-id"] == str(ID) and request.headers["webhook-timestamp"] == str(AT)
    (alert,) = json.loads(request.body)["alerts"]
    assert alert["code"] == "node_lost" and alert["url"] == ITEM.url


def test_the_signature_is_the_one_of_the_published_example() -> None:
    """Example of the specification's libraries (standard-webhooks, libraries/python/tests)."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    told = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert told == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_slack_gets_escaped_mrkdwn() -> None:
    text = body_of(Way.SLACK)["text"]
    assert "<https://berth.test/alerts/1/|Critical: &lt;lost&gt; &amp; *gone*>: gpu-1 @all" in text


def test_markdown_of_a_message_neither_formats_nor_calls_everybody() -> None:
    text = body_of(Way.MATTERMOST)["text"]
    assert "@all" not in text and "\\*gone\\*" in text and "](https://berth.test/alerts/1/)" in text


def test_feishu_gets_a_post_signed_in_its_body() -> None:
    body = body_of(Way.FEISHU, "top")
    assert body["msg_type"] == "post" and body["content"]["post"]["zh_cn"]["title"] == ITEM.title
    digest = hmac.new(f"{AT}\ntop".encode(), digestmod=hashlib.sha256).digest()
    assert (body["timestamp"], body["sign"]) == (str(AT), base64.b64encode(digest).decode())


def test_dingtalk_gets_markdown_signed_in_its_address() -> None:
    request = request_for(
        Way.DINGTALK, "https://oapi.dingtalk.com/robot/send?access_token=t", "SECx", MESSAGE
    )
    asked = parse_qs(urlsplit(request.url).query)
    digest = hmac.new(b"SECx", f"{AT}000\nSECx".encode(), hashlib.sha256).digest()
    assert asked == {
        "access_token": ["t"],
        "timestamp": [f"{AT}000"],
        "sign": [base64.b64encode(digest).decode()],
    }
    assert json.loads(request.body)["msgtype"] == "markdown"


@pytest.mark.parametrize(
    ("way", "answer", "is_taken"),
    [
        (Way.WEBHOOK, Answer(204, b""), True),
        (Way.WEBHOOK, Answer(302, b""), False),
        (Way.SLACK, Answer(200, b"ok"), True),
        (Way.SLACK, Answer(403, b"invalid_token"), False),
        (Way.FEISHU, Answer(200, b'{"code":0,"msg":"success","StatusCode":0}'), True),
        (Way.FEISHU, Answer(200, b'{"code":19021,"msg":"sign match fail"}'), False),
        (Way.FEISHU, Answer(200, b'{"StatusCode":0,"StatusMessage":"success"}'), True),
        (Way.DINGTALK, Answer(200, b'{"errcode":0,"errmsg":"ok"}'), True),
        (Way.DINGTALK, Answer(200, b'{"errcode":310000,"errmsg":"sign not match"}'), False),
        (Way.DINGTALK, Answer(200, b"<html>"), False),
    ],
)
def test_what_counts_as_taken(way: Way, answer: Answer, is_taken: bool) -> None:
    assert (refused(way, answer) == "") == is_taken
