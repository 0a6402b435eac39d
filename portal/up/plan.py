"""What this `make up` runs, decided from the environment before anything starts."""

import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from portal.up import ports
from portal.up.postgres import Server
from portal.up.refusal import Refusal
from portal.up.state import State

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TRIAL_IMAGE = "berth.local/jupyter:1"
POD_KINDS = ("process", "played")


@dataclass(frozen=True)
class Program:
    """One process under supervisor. Programs stop in the reverse of their order here."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    stop_signal: str = "TERM"
    stop_seconds: int = 2  # then SIGKILL: every part survives that, and Ctrl-C promises 5 seconds


@dataclass(frozen=True)
class Plan:
    state: State
    address: str
    demo_password: str
    new_demo_password: bool
    server: Server | None
    cluster_port: int | None
    run_file: Mapping[str, str]
    programs: tuple[Program, ...]

    @property
    def has_trial_cluster(self) -> bool:
        return self.cluster_port is not None


def make_plan(state: State, sockets: Path, environ: Mapping[str, str]) -> Plan:
    """Look at settings and ports; refuse with what to do, or say what will run."""
    kept = state.read_run_file()
    web_port = number(environ, "PORT", 8000)
    ports.require_web_port(web_port)
    address = f"http://{ports.LOOPBACK}:{web_port}/"
    server = None if environ.get("DATABASE_URL") else Server(state.postgres, sockets / "postgres")
    cluster_port, pods = None, environ.get("BERTH_DEVCLUSTER_PODS") or POD_KINDS[0]
    if not environ.get("KUBECONFIG"):
        if pods not in POD_KINDS:
            raise Refusal(f"BERTH_DEVCLUSTER_PODS is {pods!r}; it may be {' or '.join(POD_KINDS)}.")
        if pods == "process":
            ports.require_workspace_ports()
        cluster_port = ports.keep_or_choose(kept.get("BERTH_DEVCLUSTER_PORT"))
    password = (
        environ.get("BERTH_DEMO_PASSWORD") or kept.get("BERTH_DEMO_PASSWORD") or secrets.token_urlsafe(9)
    )

    run_file = {
        "BERTH_TRIAL": "1",
        "BERTH_SECRET_KEY": environ.get("BERTH_SECRET_KEY")
        or kept.get("BERTH_SECRET_KEY")
        or secrets.token_urlsafe(48),
        "DATABASE_URL": server.url if server else environ["DATABASE_URL"],
        "KUBECONFIG": str(state.kubeconfig) if cluster_port else environ["KUBECONFIG"],
        "BERTH_BASE_URL": address.rstrip("/"),
        "BERTH_ALLOWED_HOSTS": f"{ports.LOOPBACK},localhost",
        "BERTH_SSH_SERVICE_PORT": str(ports.ssh_service_port() if cluster_port else 22),
        "BERTH_DEMO_PASSWORD": password,
    }
    if cluster_port:
        run_file["BERTH_DEVCLUSTER_PORT"] = str(cluster_port)
        run_file["BERTH_DEVCLUSTER_PODS"] = pods
        run_file["BERTH_WORKSPACE_IMAGE"] = environ.get("BERTH_WORKSPACE_IMAGE") or TRIAL_IMAGE
        if environ.get("BERTH_DEVCLUSTER_NODES"):
            run_file["BERTH_DEVCLUSTER_NODES"] = str(Path(environ["BERTH_DEVCLUSTER_NODES"]).resolve())

    programs = [
        Program("worker", manage("qcluster"), {"BERTH_ROLE": "worker", "BERTH_WORKERS": "2"}),
        Program("watcher", manage("watch"), {"BERTH_ROLE": "watcher"}),
        Program("web", web_command(web_port), {"BERTH_ROLE": "web"}),
    ]
    if cluster_port:
        programs.insert(0, Program("cluster", cluster_command(state, run_file), {}, stop_seconds=4))
    if server:
        programs.insert(
            0, Program("postgres", tuple(server.command()), {}, stop_signal="INT", stop_seconds=10)
        )
    return Plan(
        state=state,
        address=address,
        demo_password=password,
        new_demo_password=password != kept.get("BERTH_DEMO_PASSWORD"),
        server=server,
        cluster_port=cluster_port,
        run_file=run_file,
        programs=tuple(programs),
    )


def number(environ: Mapping[str, str], name: str, default: int) -> int:
    value = environ.get(name) or str(default)
    if not value.isdigit() or not 0 < int(value) < 65536:
        raise Refusal(f"{name} is {value!r}; it must be a port number, such as {default}.")
    return int(value)


def manage(*words: str) -> tuple[str, ...]:
    return (sys.executable, str(REPOSITORY / "manage.py"), *words)


def web_command(port: int) -> tuple[str, ...]:
    options = ("--host", ports.LOOPBACK, "--port", str(port), "--timeout-graceful-shutdown", "1")
    return (sys.executable, "-m", "uvicorn", "portal.asgi:application", *options, "--no-access-log")


def cluster_command(state: State, settings: Mapping[str, str]) -> tuple[str, ...]:
    """The trial cluster with this state's defaults; `manage.py devcluster` runs the same words."""
    command = [sys.executable, "-m", "devcluster", "--state-dir", str(state.cluster)]
    command += ["--port", settings["BERTH_DEVCLUSTER_PORT"], "--kubeconfig", str(state.kubeconfig)]
    command += ["--pods", settings["BERTH_DEVCLUSTER_PODS"], "--image", f"{TRIAL_IMAGE}={state.image}"]
    if "BERTH_DEVCLUSTER_NODES" in settings:
        command += ["--nodes", settings["BERTH_DEVCLUSTER_NODES"]]
    return tuple(command)


def environment(plan: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    """What every part inherits: the person's own environment, less what run.env says (secrets stay in that file)."""
    dropped = {*plan.run_file, "BERTH_ROLE", "DJANGO_SETTINGS_MODULE"}
    kept = {name: value for name, value in environ.items() if name not in dropped}
    return kept | {"BERTH_STATE_DIR": str(plan.state.folder), "PYTHONUNBUFFERED": "1"}
