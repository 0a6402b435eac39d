"""The plan of this `make up`, decided from the environment before anything starts."""

import secrets
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from portal.up import ports
from portal.up.postgres import Server
from portal.up.refusal import Refusal
from portal.up.state import State

REPOSITORY = Path(__file__).resolve().parent.parent.parent
TRIAL_IMAGE = "berth.local/jupyter:1"
TRIAL_HOME_CLASS = "net-shared"
TRIAL_DISK_CLASS = "local-fast"
POD_KINDS = ("process", "played")
CATALOGUE_SETTINGS = ("BERTH_WORKSPACE_IMAGE", "BERTH_DISK_CLASS", "BERTH_HOME_CLASS")


@dataclass(frozen=True)
class Program:
    """A process under supervisor. Groups stop in reverse order, the members of a group at once."""

    name: str
    group: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    stop_signal: str = "TERM"
    stop_seconds: int = 2  # then SIGKILL: every part survives that, and Ctrl-C promises 5 seconds


@dataclass(frozen=True)
class Plan:
    state: State
    address: str
    server: Server | None
    settings: Mapping[str, str]  # what run.env will say
    has_new_password: bool
    programs: tuple[Program, ...]

    @property
    def jump_address(self) -> str:
        return self.settings["BERTH_SSH_JUMP_LISTEN"]

    @property
    def jump_public_address(self) -> str:
        return f"{self.settings['BERTH_SSH_JUMP_HOST']}:{self.settings['BERTH_SSH_JUMP_PORT']}"

    @property
    def has_trial_cluster(self) -> bool:
        return "BERTH_DEVCLUSTER_PORT" in self.settings


def make_plan(state: State, sockets: Path, environ: Mapping[str, str]) -> Plan:
    """Return what will run, from settings and ports. Raise Refusal with what to do."""
    kept = state.read_run_file()
    web_port = number(environ, "PORT", 8000)
    ports.require_web_port(web_port)
    address = f"http://{ports.LOOPBACK}:{web_port}/"
    server = None if environ.get("DATABASE_URL") else Server(state.postgres, sockets / "postgres")
    settings = {
        "BERTH_TRIAL": "1",
        "BERTH_SECRET_KEY": secrets.token_urlsafe(48),
        "BERTH_DEMO_PASSWORD": secrets.token_urlsafe(9),
        **pick(kept, "BERTH_SECRET_KEY", "BERTH_DEMO_PASSWORD"),
        **pick(environ, "BERTH_SECRET_KEY", "BERTH_DEMO_PASSWORD", *CATALOGUE_SETTINGS),
        "DATABASE_URL": server.url if server else environ["DATABASE_URL"],
        "BERTH_BASE_URL": address.rstrip("/"),
        "BERTH_ALLOWED_HOSTS": f"{ports.LOOPBACK},localhost",
        **jump_settings(kept, environ),
        **(
            {"KUBECONFIG": str(Path(environ["KUBECONFIG"]).resolve())}
            if environ.get("KUBECONFIG")
            else trial_cluster_settings(state, kept, environ)
        ),
    }
    return Plan(
        state=state,
        address=address,
        server=server,
        settings=settings,
        has_new_password=settings["BERTH_DEMO_PASSWORD"] != kept.get("BERTH_DEMO_PASSWORD"),
        programs=tuple(programs(state, server, settings, web_port)),
    )


def pick(values: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: values[name] for name in names if values.get(name)}


def jump_settings(kept: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Settings of SSH through Berth. Its port is the previous one, the usual one, or any free one."""
    previous = kept.get("BERTH_SSH_JUMP_PORT") or str(ports.SSH_JUMP)
    port = environ.get("BERTH_SSH_JUMP_PORT") or str(ports.keep_or_choose(previous))
    return {
        "BERTH_SSH_JUMP_HOST": environ.get("BERTH_SSH_JUMP_HOST") or ports.LOOPBACK,
        "BERTH_SSH_JUMP_PORT": port,
        "BERTH_SSH_JUMP_LISTEN": environ.get("BERTH_SSH_JUMP_LISTEN") or f"{ports.LOOPBACK}:{port}",
    }


def trial_cluster_settings(
    state: State, kept: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, str]:
    """Settings of the trial cluster. Its port survives restarts, so that a copied kubeconfig still works."""
    pods = environ.get("BERTH_DEVCLUSTER_PODS") or POD_KINDS[0]
    if pods not in POD_KINDS:
        raise Refusal(f"BERTH_DEVCLUSTER_PODS is {pods!r}; it may be {' or '.join(POD_KINDS)}.")
    if pods == "process":
        ports.require_workspace_ports()
    settings = {
        "KUBECONFIG": str(state.kubeconfig),
        "BERTH_DEVCLUSTER_PORT": str(ports.keep_or_choose(kept.get("BERTH_DEVCLUSTER_PORT"))),
        "BERTH_DEVCLUSTER_PODS": pods,
        "BERTH_SSH_SERVICE_PORT": str(ports.ssh_service_port()),
        "BERTH_WORKSPACE_IMAGE": environ.get("BERTH_WORKSPACE_IMAGE") or TRIAL_IMAGE,
        "BERTH_HOME_CLASS": environ.get("BERTH_HOME_CLASS") or TRIAL_HOME_CLASS,
        "BERTH_DISK_CLASS": environ.get("BERTH_DISK_CLASS") or TRIAL_DISK_CLASS,
    }
    if environ.get("BERTH_DEVCLUSTER_NODES"):
        settings["BERTH_DEVCLUSTER_NODES"] = str(Path(environ["BERTH_DEVCLUSTER_NODES"]).resolve())
    return settings


def programs(
    state: State, server: Server | None, settings: Mapping[str, str], web_port: int
) -> Iterator[Program]:
    """Yield the programs in the order of their start."""
    if server:
        yield Program("postgres", "postgres", tuple(server.command()), {}, stop_signal="INT", stop_seconds=10)
    if "BERTH_DEVCLUSTER_PORT" in settings:
        yield Program("cluster", "cluster", cluster_command(state, settings), {}, stop_seconds=4)
    yield Program("worker", "portal", manage("worker"), {"BERTH_ROLE": "worker", "BERTH_WORKERS": "2"})
    yield Program("watcher", "portal", manage("watch"), {"BERTH_ROLE": "watcher"})
    yield Program("collector", "portal", manage("collect"), {"BERTH_ROLE": "collector"})
    yield Program("ssh-jump", "portal", manage("ssh_jump"), {"BERTH_ROLE": "ssh-jump"})
    yield Program("web", "portal", web_command(web_port), {"BERTH_ROLE": "web"})


def number(environ: Mapping[str, str], name: str, default: int) -> int:
    value = environ.get(name) or str(default)
    if not value.isdigit() or not 0 < int(value) < 65536:
        raise Refusal(f"{name} is {value!r}; it must be a port number, such as {default}.")
    return int(value)


def manage(*words: str) -> tuple[str, ...]:
    return (sys.executable, str(REPOSITORY / "manage.py"), *words)


def web_command(port: int) -> tuple[str, ...]:
    """Command of the web server. Without a proxy, headers with the client's address could come from anybody."""
    options = ("--host", ports.LOOPBACK, "--port", str(port), "--timeout-graceful-shutdown", "1")
    # Node agents report every five seconds; uvicorn's default would close their connections just then.
    quiet = ("--no-access-log", "--no-proxy-headers", "--timeout-keep-alive", "75")
    sockets = ("--loop", "asyncio", "--ws", "portal.sockets:Sockets", "--ws-per-message-deflate", "false")
    return (sys.executable, "-m", "uvicorn", "portal.asgi:application", *options, *quiet, *sockets)


def cluster_command(state: State, settings: Mapping[str, str]) -> tuple[str, ...]:
    """The trial cluster with this state's defaults; `manage.py devcluster` runs the same command."""
    command = [sys.executable, "-m", "devcluster", "--state-dir", str(state.cluster)]
    command += ["--port", settings["BERTH_DEVCLUSTER_PORT"], "--kubeconfig", str(state.kubeconfig)]
    command += ["--pods", settings["BERTH_DEVCLUSTER_PODS"]]
    if settings["BERTH_DEVCLUSTER_PODS"] == "process":
        command += ["--image", f"{TRIAL_IMAGE}={state.image}"]
    if "BERTH_DEVCLUSTER_NODES" in settings:
        command += ["--nodes", settings["BERTH_DEVCLUSTER_NODES"]]
    if "BERTH_BASE_URL" in settings:  # there is a portal beside it
        command += ["--agent-portal", settings["BERTH_BASE_URL"]]
        command += ["--agent-token-file", str(state.agent_token)]
    return tuple(command)


def environment(plan: Plan, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment for every part: the person's own, without the names in run.env, so that secrets stay there."""
    dropped = {*plan.settings, "BERTH_ROLE", "DJANGO_SETTINGS_MODULE"}
    kept = {name: value for name, value in environ.items() if name not in dropped}
    return kept | {"BERTH_STATE_DIR": str(plan.state.folder), "PYTHONUNBUFFERED": "1"}
