"""Texts of a workspace's events. An event stores a code and figures; the text is made when it is read, so that each
reader gets their own language. Codes of the rooms below (why it waits, why it fails) have their texts there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _

from accounts.text import in_gib
from clusters import explain
from quotas import reasons
from workloads.pods.words import OF_RUNS, Line
from workloads.spans import lifetime
from workspaces import measures
from workspaces.models import Event, Step, Workspace

from . import idle_words

LINES: dict[str, Line] = {
    # The ten steps, reported when each is done.
    "requested": Line(_("Requested “%(name)s”: %(size)s.")),
    "launched_for_a_class": Line(_("Launched by %(by)s for a class.")),
    "folder_collected": Line(_("%(by)s collected the folder “%(folder)s” for a class.")),
    "restart_requested": Line(_("“%(name)s” restarts with the resources it already has.")),
    "waits_again": Line(_("“%(name)s” waits at the front of the queue to continue: %(size)s.")),
    "admitted": Line(_("%(pool)s has room: node %(node)s was chosen.")),
    "disk_done": Line(_("Storage is ready.")),
    "container_done": Line(_("The cluster accepted the container.")),
    "scheduled_done": Line(_("The cluster placed it on node %(node)s.")),
    "image_done": Line(_("The image is on the node.")),
    "mounts_done": Line(_("Home and disks are mounted.")),
    "started_done": Line(_("Jupyter and SSH answer.")),
    "endpoint_done": Line(_("Its address is %(host)s.")),
    "ready": Line(_("Ready to use.")),
    # The current step.
    "doing_admission": Line(_("Waiting in the queue.")),
    "doing_disk": Line(_("Waiting for storage.")),
    "doing_container": Line(_("Creating the container in the cluster.")),
    "doing_scheduled": Line(_("Waiting for the cluster to place it on a node.")),
    "doing_image": Line(_("Pulling the image to the node. A large one can take minutes the first time.")),
    "doing_mounts": Line(_("Mounting home and disks.")),
    "doing_started": Line(_("Starting Jupyter and SSH.")),
    "doing_endpoint": Line(_("Waiting for an address.")),
    "doing_ready": Line(_("Almost there.")),
    # Stopping, deleting.
    "stop_requested": Line(_("Stopped by %(by)s. Files are kept.")),
    "stopping": Line(_("Stopping. Files are kept.")),
    "stopped": Line(_("Stopped. Your files are kept."), _("Start it again when you need it.")),
    "delete_requested": Line(_("Deleted by %(by)s.")),
    "deleting": Line(_("Deleting.")),
    "deleted": Line(_("Deleted. Its files are kept."), _("They are on the page “Storage”.")),
    "deleted_with_files": Line(_("Deleted, with its files.")),
    "restarting": Line(_("Restarting: the old container ends first.")),
    "renamed": Line(_("Renamed from “%(old)s” to “%(new)s”.")),
    "cloned": Line(_("It has the settings of “%(name)s”. Files were not copied.")),
    "cloned_of_another": Line(
        _(
            "It has the settings of “%(name)s”, which belongs to %(owner)s: without its environment and repository, "
            "which are private. Files were not copied."
        )
    ),
    "cloned_with_files": Line(_("It has the settings of “%(name)s”, and a copy of its files.")),
    "cloned_with_files_of_another": Line(
        _(
            "It has the settings of “%(name)s”, which belongs to %(owner)s, and a copy of its files: without its "
            "environment and repository, which are private."
        )
    ),
    "volumes_left_out": Line(_("It does not mount %(names)s: you cannot mount these volumes.")),
    # Lifetime.
    "stops_soon": Line(
        _("Its lifetime ends in %(minutes)s min: it stops then. Files are kept."),
        _("Extend it if you still need it; save what is only in memory."),
    ),
    "stopped_by_lifetime": Line(
        _("Its lifetime has ended, so it stops. Files are kept."),
        _("Start it again when you need it: its lifetime then starts again."),
    ),
    "extended": Line(_("%(by)s extended it by %(span)s.")),
    # Its weekly schedule.
    "started_by_schedule": Line(_("Requested “%(name)s” by its schedule: %(size)s.")),
    "schedule_stops_soon": Line(
        _("Its schedule stops it at %(time)s. Files are kept."),
        _("Press “Keep running” on its page to keep it today; save what is only in memory."),
    ),
    "stopped_by_schedule": Line(
        _("Its schedule stopped it. Files are kept."), _("Start it yourself to use it outside of its times.")
    ),
    "schedule_no_room": Line(
        _("Its schedule did not start it today: there was no room for 15 minutes."),
        _("Start it yourself to wait in the queue, or choose another size."),
    ),
    "schedule_refused": Line(
        _("Its schedule could not start it: %(reason)s"), _("Start it yourself to see what to do.")
    ),
    # Idleness. `measured` is the list of figures.
    "idle_stops_soon": Line(
        _("Idle for %(span)s: %(figures)s. It stops at %(time)s if nothing is done in it. Files are kept."),
        _("Press “Keep running” on its page, or touch the file that BERTH_KEEP_ALIVE names."),
    ),
    "stopped_by_idleness": Line(
        _("Idle for %(span)s, so it stops: %(figures)s. Files are kept."),
        _("Start it again when you need it."),
    ),
    "idle_over": Line(_("It is no longer counted as idle: it continues.")),
    "idle_put_off": Line(_("It may be idle for longer now, so it is stopped later than announced.")),
    "kept_alive": Line(_("%(by)s kept it running.")),
    "idle_minutes_changed": Line(_("It stops when it was idle for %(span)s.")),
    "idle_minutes_removed": Line(_("Its owner no longer asks to stop it when it is idle.")),
    "resized": Line(_("Its new size is %(size)s.")),
    "resized_later": Line(
        _("Its size is %(size)s from its next start."), _("Restart it to use that size now.")
    ),
    "size_stays": Line(_("It keeps its size: %(size)s.")),
    "image_changed": Line(_("Its image is “%(new)s”; before it was “%(old)s”.")),
    "image_later": Line(
        _("Its image is “%(new)s” from its next start."), _("Restart it to use that image now.")
    ),
    "image_stays": Line(_("It keeps its image: “%(new)s”.")),
    "image_gone": Line(
        _("The image “%(gone)s” is not offered any more. It keeps “%(name)s”."),
        _("Choose another image in its settings."),
    ),
    "settings_changed": Line(_("Its settings were changed: %(what)s.")),
    "settings_later": Line(
        _("Its settings change at its next start: %(what)s."), _("Restart it to apply them now.")
    ),
    "settings_stay": Line(_("It keeps its settings: %(what)s.")),
    "remounted": Line(_("The list of volumes that it mounts was changed.")),
    "remounted_later": Line(
        _("The volumes that it mounts change at its next start."), _("Restart it to mount them now.")
    ),
    "metrics_changed": Line(_("Prometheus is told to read its metrics at port %(port)s, path %(path)s.")),
    "metrics_removed": Line(_("Prometheus is no longer told to read its metrics.")),
    "app_added": Line(_("The app “%(app)s” at port %(port)s was added: only its owner can open it.")),
    "app_renamed": Line(_("The app at port %(port)s is called “%(app)s”.")),
    "app_shared": Line(_("Everyone in the tenant can open the app “%(app)s” at port %(port)s.")),
    "app_private": Line(
        _("The app “%(app)s” at port %(port)s is private again: only its owner can open it.")
    ),
    "app_removed": Line(_("The app “%(app)s” at port %(port)s was removed.")),
    "volumes_stay": Line(_("It keeps the volumes that it mounts.")),
    "disk_added": Line(_("A local disk of %(amount)s comes with its next start.")),
    "disk_left": Line(
        _("It gets a new, empty local disk, and can start on another node. “%(volume)s” stays under Storage.")
    ),
    "disk_grown": Line(_("Its local disk grows to %(amount)s.")),
    "lifetime_changed": Line(_("Its lifetime is %(span)s from now on.")),
    "lifetime_capped": Line(
        _("It runs for %(span)s at most from now on: an admin set that for its tenant."),
        _("It starts again with each start."),
    ),
    "lifetime_removed": Line(_("It no longer has a lifetime: it runs until somebody stops it.")),
    # Troubles with texts of our own.
    "interrupted": Line(
        _("The container was stopped from outside (%(reason)s)."),
        _("It restarts automatically; files are kept."),
    ),
    "interrupted_often": Line(
        _("The container was stopped from outside repeatedly (%(reason)s)."),
        _("Check what it uses, such as temporary disk space, then start it again."),
    ),
    "container_restarted": Line(
        _("The container restarted on the same node. Files are kept; running programs are lost.")
    ),
    "node_back": Line(_("Node %(node)s answers again. Running workspaces there continue.")),
    "ailment_over": Line(_("Resolved: %(was)s")),
    "node_drains": Line(
        _("Its node is taken out of use for maintenance at %(time)s: it stops then. Files are kept."),
        _("Save what is only in memory. Stop it and start it again to continue on another node now."),
    ),
    "stopped_by_drain": Line(
        _("Its node is taken out of use for maintenance, so it stops. Files are kept."),
        _("Start it again: it gets another node."),
    ),
    "ended_before_ready": Line(
        _("The container ended before it was ready (%(reason)s)."),
        _("Check its logs, then start it again."),
    ),
    "given_up": Line(
        _("This start was cancelled. Its GPUs go back to the pool, files are kept."),
        _("Start it again when the problem is fixed."),
    ),
    "sent_back": Line(
        _("It could not be placed, and went back to the front of the queue."),
        _("Berth retries automatically."),
    ),
    "cluster_unavailable": Line(
        _("The cluster does not answer at the moment."),
        _("Nothing is lost: it continues when the cluster is back."),
    ),
    "end_unproven": Line(
        _("Its container disappeared and its end is not confirmed, so its GPUs stay reserved."),
        _("An admin has to confirm that the container, or its node, is really off."),
    ),
    "refused_again": Line(
        _("It cannot start again: it needs more than your team's limit, or than any node of its pool has."),
        _("Its files are kept. Ask your admin for more quota, or launch a smaller workspace."),
    ),
    **OF_RUNS,
    "namespace_foreign": Line(
        _("The namespace %(namespace)s exists and does not belong to this installation of Berth."),
        _("Ask an admin to remove or rename it. Berth never takes over a namespace of others."),
    ),
    "namespace_terminating": Line(
        _("The namespace %(namespace)s is being deleted."), _("It is created again as soon as it is gone.")
    ),
    # Actions of an admin on objects in the cluster that were not as they should be.
    "restart_by_admin": Line(
        _("%(by)s restarted it: somebody had changed its container in the cluster."), _("Files are kept.")
    ),
    "drift_recreated": Line(_("%(by)s recreated %(object)s.")),
    "drift_accepted": Line(_("%(by)s accepted a change to %(object)s in the cluster.")),
    "drift_deleted": Line(_("%(by)s deleted %(object)s in the cluster, which was not needed.")),
    "kept_claim_deleted": Line(
        _("%(by)s deleted its storage %(object)s. The data is kept on volume %(volume)s."),
        _("Ask an admin for that volume if you need it."),
    ),
    "kept_data_deleted": Line(_("%(by)s deleted its storage %(object)s with the data on it.")),
    # Preempted borrowed GPUs, and a budget that is spent.
    "asked_back_owner_waits": Line(
        _("It uses borrowed GPUs, and the team that owns them needs them: it stops in %(minutes)s min."),
        _("Save what is only in memory. Files are kept, and it returns to the front of the queue."),
    ),
    "asked_back_booking_begins": Line(
        _("It uses borrowed GPUs that are booked by someone else: it stops in %(minutes)s min."),
        _("Save what is only in memory. Files are kept, and it returns to the front of the queue."),
    ),
    "spared": Line(_("Its GPUs are no longer needed elsewhere: it continues.")),
    "given_back": Line(
        _("It returns its borrowed GPUs. Files are kept."),
        _("It waits at the front of the queue and continues automatically when GPUs are free."),
    ),
    "giving_back": Line(_("Returning its GPUs. Files are kept.")),
    "ends_by_budget": Line(
        _("The GPU-hours of this month are used up: it stops in %(minutes)s min. Files are kept."),
        _("Save what is only in memory. If an admin adds hours, it keeps running."),
    ),
    "goes_on_by_budget": Line(_("GPU-hours are available again: it continues.")),
    "stopped_by_budget_spent": Line(
        _("The GPU-hours of this month are used up, so it stops. Files are kept."),
        _("Start it again when an admin has added hours, or next month."),
    ),
}


# Events by which a run failed, was interrupted, or lost what ran in it: the room above keeps a record of each such run.
RECORDED = frozenset({"given_up", "interrupted", "container_restarted", "sent_back"})


# Words for what a change of settings concerns. Their values are for the owner alone.
SETTINGS = {
    "size": _("size"),
    "volumes": _("volumes"),
    "image": _("image"),
    "env": _("environment"),
    "secret_env": _("secrets"),
    "repository": _("repository"),
}


def is_recorded(event: Event) -> bool:
    """Return True if the event's run has a record. One that was sent back has none if no node had taken its pod."""
    is_so = event.code in RECORDED and event.run is not None
    return is_so and (event.code != "sent_back" or "node" in event.data)


def sentence(code: str, data: Mapping[str, Any]) -> str:
    """Return a sentence in the reader's language; "" for no code."""
    if not code:
        return ""
    if (line := LINES.get(code)) is not None:
        return str(line.sentence) % _for_people(data) if data else str(line.sentence)
    return reasons.sentence(code, data) if reasons.knows(code) else explain.sentence(code, data)


def hint(code: str, data: Mapping[str, Any]) -> str:
    """Return advice on what to do, or ""."""
    if not code:
        return ""
    if (line := LINES.get(code)) is not None:
        return str(line.hint)
    return reasons.hint(code, data) if reasons.knows(code) else explain.hint(code, data)


def _for_people(data: Mapping[str, Any]) -> Mapping[str, Any]:
    if "what" in data:
        return {**data, "was": sentence(data["what"], data["about"])}
    more: dict[str, Any] = {}
    if "until" in data:
        more["time"] = date_format(localtime(datetime.fromisoformat(data["until"])), "H:i T")
    if "mib" in data:
        more["amount"] = in_gib(data["mib"])
    if "minutes" in data:
        more["span"] = lifetime(data["minutes"])
    if "fields" in data:
        more["what"] = ", ".join(str(SETTINGS[name]) for name in data["fields"])
    if "measured" in data:
        more["figures"] = idle_words.figures(data["measured"])
    return {**data, **more}


def add_event(
    workspace: Workspace,
    code: str,
    *,
    step: Step | str = "",
    level: Event.Level = Event.Level.INFO,
    **data: Any,
) -> Event:
    """Add the next event, numbered 1, 2, 3 … without a gap. Only inside `live.changing`, which writes it at its end,
    or on a new row, before `live.write_events`.
    """
    workspace.last_event += 1
    event = Event(
        workspace=workspace,
        number=workspace.last_event,
        run=workspace.run,
        at=timezone.now(),
        step=step,
        level=level,
        code=code,
        data=data,
    )
    workspace.new_events.append(event)
    measures.count_step(event)
    return event
