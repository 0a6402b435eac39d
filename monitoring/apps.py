from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class MonitoringConfig(AppConfig):
    name = "monitoring"
    verbose_name = _("Monitoring")

    def ready(self) -> None:
        from accounts.trail import trail_words as trail
        from clusters.doctor import examination
        from clusters.errands import running
        from clusters.signals import nodes_changed, objects_changed, pods_measured, relisted, tick
        from quotas.accounting import used
        from workloads import devices as of_runs
        from workloads import drivers

        from . import doctor, nodes, trail_words
        from .alerts import driving, own_parts, sources, troubles
        from .dcgm import readings
        from .drift import actions as drift_actions
        from .drift import looks
        from .figures import busy, devices, pods, thinning
        from .health import drain, signs, starts, supplies
        from .idle import looking as idle
        from .intake import ecc
        from .isolation import steps as isolation
        from .parts import looks as parts
        from .validation import steps

        trail.register(trail_words.KINDS, trail_words.DONE)
        examination.register(doctor.findings_about)
        running.register("monitoring.close", drain.close_for)
        running.register("monitoring.drift", drift_actions.do_for)
        tick.connect(looks.on_tick, dispatch_uid="monitoring.looks")
        tick.connect(thinning.on_tick, dispatch_uid="monitoring.thinning")
        tick.connect(ecc.on_tick, dispatch_uid="monitoring.ecc")
        tick.connect(steps.on_tick, dispatch_uid="monitoring.validation")
        objects_changed.connect(steps.on_objects_changed, dispatch_uid="monitoring.validation")
        tick.connect(isolation.on_tick, dispatch_uid="monitoring.isolation")
        objects_changed.connect(isolation.on_objects_changed, dispatch_uid="monitoring.isolation")
        tick.connect(signs.on_tick, dispatch_uid="monitoring.health")
        tick.connect(supplies.on_tick, dispatch_uid="monitoring.supplies")
        tick.connect(doctor.on_tick, dispatch_uid="monitoring.doctor")
        tick.connect(parts.on_tick, dispatch_uid="monitoring.parts")
        nodes_changed.connect(signs.on_nodes_changed, dispatch_uid="monitoring.health")
        objects_changed.connect(starts.on_objects_changed, dispatch_uid="monitoring.health")
        relisted.connect(signs.on_relisted, dispatch_uid="monitoring.health")
        tick.connect(idle.on_tick, dispatch_uid="monitoring.idle")
        tick.connect(readings.on_tick, dispatch_uid="monitoring.prometheus")
        pods_measured.connect(pods.on_pods_measured, dispatch_uid="monitoring.figures")
        sources.register("trouble", troubles.firings)
        sources.register("berth", own_parts.firings)
        tick.connect(driving.on_tick, dispatch_uid="monitoring.alerts")
        used.register(busy.busy_seconds)
        of_runs.register(devices.devices_of)
        drivers.register(nodes.drivers_of)
        self._connect_post_mortems()
        self._connect_tests()

    def _connect_tests(self) -> None:
        from clusters.doctor import examination, proving
        from clusters.site import registries

        from .isolation import manifests as of_proofs
        from .isolation import proof, queries
        from .validation import manifests as of_tests

        examination.register(queries.findings)
        proving.register(proof.Proofs())
        registries.register(of_proofs.namespaces)
        registries.register(lambda instance: {of_tests.namespace(instance)})

    def _connect_post_mortems(self) -> None:
        from clusters.signals import objects_changed, tick
        from jobs import changing
        from workspaces.state import live

        from .alerts import sources
        from .alerts import words as of_alerts
        from .post_mortems import filling, groups, opening, pods, words

        live.register(opening.on_workspace_event)
        changing.register(opening.on_job_event)
        objects_changed.connect(pods.on_objects_changed, dispatch_uid="monitoring.post_mortems")
        tick.connect(filling.on_tick, dispatch_uid="monitoring.post_mortems")
        sources.register("post-mortems", groups.firings)
        of_alerts.register(words.GROUPS, words.of_group)
