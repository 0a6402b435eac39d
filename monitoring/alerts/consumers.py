"""Websocket that wakes the pages of alerts. It sends no data: the page then loads what its person may see."""

from __future__ import annotations

from typing import Any

from monitoring.alerts.raising import LIVE
from workloads.live.sockets import Live


class Alerts(Live):
    def groups_to_hear(self) -> set[str]:
        return {LIVE}

    async def send_changes(self) -> None:
        await self.send_json({"type": "alerts"})

    async def alerts_changed(self, message: dict[str, Any]) -> None:
        self.wake()
