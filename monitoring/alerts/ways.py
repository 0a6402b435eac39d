"""Messages of alerts in the form that each receiver wants. Pure: values in, a request out.

- webhook: JSON, signed as Standard Webhooks 1.0 says (https://www.standardwebhooks.com): HMAC-SHA256 over
  `id.timestamp.body`, in the headers webhook-id, webhook-timestamp and webhook-signature
- Slack and Mattermost: `{"text": …}` to an incoming webhook, with the links of each; both answer 200 and `ok`
- Feishu / Lark: a custom bot; `timestamp` (seconds) and `sign` in the body, where the key of the HMAC is
  `timestamp\\nsecret` and its message is empty; a failure is a code in an answer of 200
- DingTalk: a custom robot; `timestamp` (milliseconds) and `sign` in the address, an HMAC of `timestamp\\nsecret` with
  the secret as key; a failure is an errcode in an answer of 200
"""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote_plus
from uuid import UUID

from monitoring.alerts.posting import Answer, Request
from monitoring.models import AlertRoute

Way = AlertRoute.Way
SECRET_PREFIX = "whsec_"  # noqa: S105  (not a secret: how Standard Webhooks marks one)


@dataclass(frozen=True)
class Item:
    """One alert in a message. `facts`: for programs."""

    title: str
    text: str
    hint: str
    url: str
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Message:
    """What a receiver is told. `language`: of the texts. `id` stays the same if it is sent again."""

    id: UUID
    at: int
    title: str
    items: Sequence[Item]
    language: str


def request_for(way: str, address: str, secret: str, message: Message) -> Request:
    return _WAYS[Way(way)](address, secret, message)


def refused(way: str, answer: Answer) -> str:
    """Return why the receiver did not take the message; "" if it did."""
    if not 200 <= answer.status < 300:
        return f"The receiver answered {answer.status}."
    if way in (Way.FEISHU, Way.DINGTALK):
        return _refused_in_body(answer.body)
    return ""


def _refused_in_body(body: bytes) -> str:
    try:
        told = json.loads(body)
    except ValueError:
        return "The receiver's answer is not JSON."
    if not isinstance(told, dict):
        return "The receiver's answer is not a JSON object."
    code = next((told[name] for name in ("code", "errcode", "StatusCode") if name in told), None)
    said = next((told[name] for name in ("msg", "errmsg", "StatusMessage") if name in told), "")
    return "" if code == 0 else f"The receiver refused it with {code}: {said}"[:240]


def _json(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _posted(url: str, body: Any, **headers: str) -> Request:
    return Request(url, _json(body), _HEADERS | headers)


_HEADERS = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Berth-Alerts/1"}


# --- A webhook of one's own


def _webhook(address: str, secret: str, message: Message) -> Request:
    body = _json(
        {
            "type": "alerts",
            "id": str(message.id),
            "title": message.title,
            "alerts": [
                {"title": item.title, "message": item.text, "hint": item.hint, "url": item.url, **item.facts}
                for item in message.items
            ],
        }
    )
    headers = {"webhook-id": str(message.id), "webhook-timestamp": str(message.at)}
    if secret:
        headers["webhook-signature"] = sign(secret, str(message.id), message.at, body)
    return Request(address, body, _HEADERS | headers)


def sign(secret: str, id: str, at: int, body: bytes) -> str:
    """Return the signature of Standard Webhooks. A secret `whsec_…` is base64; any other one is taken as it is."""
    encoded = secret.removeprefix(SECRET_PREFIX)
    key = secret.encode() if encoded == secret else base64.b64decode(encoded, validate=True)
    digest = hmac.digest(key, f"{id}.{at}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"


# --- Chats


def _slack(address: str, secret: str, message: Message) -> Request:
    """https://api.slack.com/messaging/webhooks: mrkdwn, in which three characters are escaped."""
    lines = [f"*{_slack_text(message.title)}*"]
    for item in message.items:
        lines.append(f"• <{item.url}|{_slack_text(item.title)}>: {_slack_text(item.text)}")
        if item.hint:
            lines.append(f"   _{_slack_text(item.hint)}_")
    return _posted(address, {"text": "\n".join(lines)})


def _slack_text(text: str) -> str:
    flat = " ".join(text.split())
    return flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _mattermost(address: str, secret: str, message: Message) -> Request:
    """https://developers.mattermost.com/integrate/webhooks/incoming/: Markdown."""
    return _posted(address, {"text": _markdown(message, bullet="- ")})


def _markdown(message: Message, *, bullet: str) -> str:
    lines = [f"#### {_flat(message.title)}"]
    for item in message.items:
        lines.append(f"{bullet}[{_flat(item.title)}]({item.url}): {_flat(item.text)}")
        if item.hint:
            lines.append(f"  {_flat(item.hint)}")
    return "\n".join(lines)


def _flat(text: str) -> str:
    """Return the text in one line. What would be Markdown, or call everybody in a channel, is text."""
    flat = " ".join(text.split()).replace("@", "@\u200b")
    return "".join(f"\\{letter}" if letter in "\\`*[]<>|~" else letter for letter in flat)


def _feishu(address: str, secret: str, message: Message) -> Request:
    """https://open.feishu.cn/document/client-docs/bot-v3/add-custom-bot: rich text ("post")."""
    content: list[list[dict[str, str]]] = []
    for item in message.items:
        content.append(
            [
                {"tag": "a", "text": item.title, "href": item.url},
                {"tag": "text", "text": f": {item.text}"},
            ]
        )
        if item.hint:
            content.append([{"tag": "text", "text": item.hint}])
    post = {"title": message.title, "content": content}
    language = "zh_cn" if message.language.startswith("zh") else "en_us"
    body: dict[str, Any] = {"msg_type": "post", "content": {"post": {language: post}}}
    if secret:
        key = f"{message.at}\n{secret}".encode()
        body |= {
            "timestamp": str(message.at),
            "sign": base64.b64encode(hmac.digest(key, b"", "sha256")).decode(),
        }
    return _posted(address, body)


def _dingtalk(address: str, secret: str, message: Message) -> Request:
    """https://open.dingtalk.com/document/robots/custom-robot-access: Markdown; a line ends with two spaces."""
    text = _markdown(message, bullet="- ").replace("\n", "  \n")
    body = {"msgtype": "markdown", "markdown": {"title": message.title, "text": text}}
    if secret:
        at = message.at * 1000
        digest = hmac.digest(secret.encode(), f"{at}\n{secret}".encode(), "sha256")
        address += ("&" if "?" in address else "?") + f"timestamp={at}&sign="
        address += quote_plus(base64.b64encode(digest))
    return _posted(address, body)


_WAYS: Mapping[Way, Callable[[str, str, Message], Request]] = {
    Way.WEBHOOK: _webhook,
    Way.SLACK: _slack,
    Way.MATTERMOST: _mattermost,
    Way.FEISHU: _feishu,
    Way.DINGTALK: _dingtalk,
}
