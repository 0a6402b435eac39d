"""Codes of causes that were renamed: events of earlier versions still have the old ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clusters.causes.cause import in_words

_NOW: dict[str, str] = {
    "address_failed": "address_conflict address_pool_missing",
    "addresses_used_up": "node_ports_exhausted",
    "berth_lacks_right": "credentials_refused",
    "class_missing": "priority_class_missing runtime_class_missing storage_class_missing volume_class_missing"
    " volume_class_not_set",
    "cluster_queue_waits": "gpu_quota_full kueue_waits scheduling_gated",
    "control_plane_slow": "webhook_unreachable",
    "evicted": "evicted_disk evicted_memory",
    "gpu_driver_not_loaded": "driver_missing_on_node gpu_driver_library_missing",
    "gpu_nvml_failed": "gpu_cgroup_mismatch gpu_runtime_missing",
    "gpu_share_short": "gpu_cores_short gpu_memory_short gpu_none_fits gpu_not_empty gpu_slots_full",
    "gpu_sharing_failed": "gpu_mig_misconfigured gpu_mps_failed",
    "gpu_software_unfit": "gpu_kind_unsupported",
    "gpu_takes_no_program": "gpu_busy gpu_cuda_not_started",
    "gpu_too_few_together": "gpu_devices_short",
    "gpu_unhealthy": "gpu_cordoned gpu_none_healthy",
    "image_not_found": "image_name_invalid image_never_pulled",
    "image_registry_unreachable": "image_certificate_untrusted image_registry_unknown",
    "image_unusable": "image_broken image_wrong_platform wrong_processor",
    "image_user_unfit": "home_not_writable image_user_is_root start_not_permitted",
    "insufficient_resource": "device_claim_unmet volume_no_space",
    "killed": "terminated",
    "network_plugin_down": "network_no_address node_network_down",
    "node_limit_reached": "node_pods_full volume_limit_reached",
    "node_not_matching": "gpu_node_unknown_to_hami gpu_type_mismatch node_ports_taken pod_rules_conflict",
    "node_not_ready": "cluster_without_nodes",
    "node_refuses": "gpu_not_handed_out node_full",
    "node_short_of_disk": "image_node_disk_full node_under_pressure",
    "node_short_of_memory": "node_short_of_processes",
    "node_tainted": "node_reserved",
    "node_unwell": "container_runtime_down image_runtime_down",
    "object_going_away": "namespace_going_away namespace_missing service_account_missing",
    "object_invalid": "namespace_quota_needs_sizes pod_security_violated",
    "program_ended": "completed_early crash_loop crashed exited",
    "rule_denied": "limit_range_violated policy_denied webhook_denied",
    "server_not_reached": "name_not_looked_up",
    "settings_missing": "settings_key_missing volume_key_missing volume_source_missing",
    "start_failed": "config_error sandbox_failed",
    "storage_unwell": "storage_slow volume_mount_timeout",
    "volume_attached_elsewhere": "volume_held_by_another",
    "volume_cannot_resize": "volume_cannot_grow volume_cannot_shrink",
    "volume_damaged": "volume_read_only",
    "volume_disk_full": "volume_none_available volume_none_to_bind",
    "volume_missing": "volume_claim_missing volume_lost",
    "volume_failed": "volume_mount_failed volume_not_grown volume_not_in_container volume_not_provisioned",
    "volume_not_mountable": "volume_access_denied volume_driver_missing",
    "volume_unbound": "volume_provisioner_silent volume_waits_for_container",
}
RENAMED = {earlier: now for now, all_earlier in _NOW.items() for earlier in all_earlier.split()}

# Data that the earlier sentence had in its words, or by another name.
_FILLED: dict[str, dict[str, str]] = {
    "berth_lacks_right": {"problem": 'User "%(account)s" cannot %(verb)s resource "%(resource)s"'},
    "completed_early": {"how": "exit code 0"},
    "crash_loop": {"how": "CrashLoopBackOff"},
    "crashed": {"how": "core dumped"},
    "credentials_refused": {"problem": "Unauthorized"},
    "device_claim_unmet": {"resource": "claims"},
    "evicted_disk": {"resource": "ephemeral-storage"},
    "evicted_memory": {"resource": "memory"},
    "exited": {"how": "exit code %(exit_code)s"},
    "gpu_cores_short": {"resource": "CardInsufficientCore"},
    "gpu_memory_short": {"resource": "CardInsufficientMemory"},
    "gpu_slots_full": {"resource": "CardTimeSlicingExhausted"},
    "limit_range_violated": {"reason": "%(bound)s, but %(actual)s"},
    "namespace_quota_needs_sizes": {"problem": "must specify %(missing)s"},
    "node_reserved": {"taint": "taints"},
    "pod_security_violated": {"problem": "%(violations)s"},
    "priority_class_missing": {"missing": "PriorityClass %(name)s"},
    "runtime_class_missing": {"missing": "RuntimeClass %(name)s"},
    "settings_key_missing": {"name": "%(key)s"},
    "storage_class_missing": {"missing": "StorageClass %(storage_class)s"},
    "volume_class_missing": {"missing": "StorageClass %(storage_class)s"},
    "volume_class_not_set": {"missing": "no storage class is set"},
    "volume_key_missing": {"name": "%(key)s"},
    "volume_lost": {"volume": "…"},
    "volume_no_space": {"resource": "storage"},
    "webhook_unreachable": {"problem": "%(webhook)s"},
}


def current(code: str, data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the code and data of a stored cause by today's names."""
    filled = {name: in_words(text, data) for name, text in _FILLED.get(code, {}).items()}
    return RENAMED.get(code, code), {**filled, **data}
