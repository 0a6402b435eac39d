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
        "part_crashing",
        NO_MESSAGE,
        _("%(part)s crashes again and again (%(where)s)."),
        _(
            "What depends on it fails: GPUs on a device plugin, volumes on a storage driver, new pods on the network "
            "plugin and the scheduler, names on DNS. An admin has to read its log."
        ),
        "admin",
    ),
    Cause(
        "part_not_ready",
        NO_MESSAGE,
        _("%(part)s is not ready (%(where)s)."),
        _("An admin has to see why: its image, its node, or what it waits for."),
        "admin",
    ),
    Cause(
        "part_missing",
        NO_MESSAGE,
        _("%(part)s runs on most nodes, but not on %(where)s."),
        _("An admin has to check its DaemonSet: node selector, tolerations, and room on these nodes."),
        "admin",
    ),
    Cause(
        "part_absent",
        NO_MESSAGE,
        _("A pool needs %(part)s, and no pod of its scheduler is there."),
        _("Nothing new starts in that pool. An admin has to install it, or to scale it up again."),
        "admin",
    ),
    Cause(
        "part_versions_differ",
        NO_MESSAGE,
        _("%(part)s runs in several versions: %(versions)s (%(where)s)."),
        _("An admin has to finish its update, or to find out why it is stuck."),
        "admin",
    ),
    Cause(
        "node_versions_differ",
        NO_MESSAGE,
        _("Nodes of one kind differ (%(what)s): most have %(usual)s, %(where)s: %(others)s."),
        _("An admin has to bring them to one version: a run may be started on any of them."),
        "admin",
    ),
    Cause(
        "versions_unfit",
        NO_MESSAGE,
        _("Versions do not fit each other: %(problem)s (%(where)s)."),
        _(
            "An admin has to update the older one. The operators' guide to doctor lists the rules and their sources."
        ),
        "admin",
    ),
    Cause(
        "node_overloaded",
        NO_MESSAGE,
        _("The node has hardly any %(what)s left: %(percent)s%% used."),
        _("What runs there may be slow, or be stopped. An admin has to see what uses it."),
        "admin",
    ),
    Cause(
        "node_network_faulty",
        NO_MESSAGE,
        _("The node's network loses packets: %(count)s errors per second."),
        _(
            "Training over several nodes and network storage become slow. An admin has to check cable, card and switch."
        ),
        "admin",
    ),
    Cause(
        "ceph_unwell",
        NO_MESSAGE,
        _("Ceph reports: %(checks)s."),
        _("Network storage may be slow or stand still. An admin has to look at Ceph itself."),
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
        _(
            "Before they are used up, an admin has to add addresses to the load balancer's pool, or free those of "
            "stopped workspaces in the cluster's settings."
        ),
        "admin",
    ),
)
