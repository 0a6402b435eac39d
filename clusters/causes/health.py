"""Causes that show in no message of the cluster: Berth finds them by watching (monitoring/health)."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from clusters.causes.cause import Cause

NO_MESSAGE = ""

CAUSES = (
    Cause(
        "gpu_slowed",
        NO_MESSAGE,
        _("The GPU runs slower than it could, because of heat or too little power."),
        _("Programs continue, but take longer. An admin has to check the cooling and power of its node."),
        "admin",
    ),
    Cause(
        "gpu_agent_limited",
        NO_MESSAGE,
        _("The node agent cannot read everything about its GPUs (%(detail)s)."),
        _("See the table of problems in the operators' guide to the node agent."),
        "admin",
    ),
    Cause(
        "gpu_plugin_down",
        NO_MESSAGE,
        _("The GPUs of the node work, but its device plugin offers none, so nothing new gets one there."),
        _(
            "Running workspaces there are not affected. An admin has to see whether the device plugin's "
            "pod on that node runs."
        ),
        "admin",
    ),
    Cause(
        "gpu_test_failed",
        NO_MESSAGE,
        _("A test of the node's GPUs failed: a small test program did not run correctly."),
        _(
            "Read the test's log. The GPUs are used again when a later test passes, or when an admin allows it."
        ),
        "admin",
    ),
    Cause(
        "agent_silent",
        NO_MESSAGE,
        _("The node agent has not reported for a while, so the state of its GPUs is unknown."),
        _("Running workspaces there are not affected. An admin has to check the agent's pod on that node."),
        "admin",
    ),
    Cause(
        "volume_nearly_full",
        NO_MESSAGE,
        _("Its storage is nearly full: %(percent)s%% used."),
        _("Delete what you do not need, or ask for more, before programs fail to write."),
    ),
    Cause(
        "addresses_nearly_used_up",
        NO_MESSAGE,
        _("Only %(free)s of %(total)s addresses for workspaces are free."),
        _("An admin has to add addresses to the load balancer's pool before they are used up."),
        "admin",
    ),
)
