"""Settings, read from the environment. Without BERTH_TRIAL=1 every default is the one for production."""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django_stubs_ext
import environ
from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from accounts.directory.configuration import directory_from
from accounts.sign_on.configuration import provider_from
from portal.environment import (
    BASE_DIR,
    from_url,
    load_run_file,
    load_secret_files,
    session_name,
    state_dir,
    to_the_primary,
)
from portal.safe_start import metrics_token, unsafe

django_stubs_ext.monkeypatch()  # lets ModelAdmin[X] and the like be written outside of annotations
load_secret_files()
load_run_file()
env = environ.Env()

# Version of this Berth, as in pyproject.toml. The first two numbers are those of its API and of the client for it.
VERSION = "0.1.0"
# A trial on one machine: plain HTTP on loopback, demo users, mail to a file.
TRIAL = env.bool("BERTH_TRIAL", default=False)
# Which process this is: web, worker, watcher, collector, ssh-jump, or empty for a management command.
ROLE = env.str("BERTH_ROLE", default="")
# Names of the parts' service accounts in the cluster that Berth runs in (deploy/kubernetes/rbac.yaml).
SERVICE_ACCOUNTS = {
    part: env.str(f"BERTH_{part.upper()}_ACCOUNT", default=f"berth-{part}") for part in ("watcher", "worker")
}
# Folders of the nodes where a pool's driver may be in Berth's own cluster: those of admission.yaml. Empty: any.
DRIVER_FOLDERS = env.list("BERTH_DRIVER_FOLDERS", default=[])

DEBUG = env.bool("BERTH_DEBUG", default=False)
SECRET_KEY = env.str("BERTH_SECRET_KEY")
SECRET_KEY_FALLBACKS = env.list("BERTH_SECRET_KEY_FALLBACKS", default=[])
BASE_URL = env.str("BERTH_BASE_URL", default="http://127.0.0.1:8000" if TRIAL else "")
if not TRIAL and (
    why := unsafe(
        secret_key=SECRET_KEY, base_url=BASE_URL, proxies=env.str("FORWARDED_ALLOW_IPS", default="")
    )
):
    raise ImproperlyConfigured(why)
ALLOWED_HOSTS = env.list("BERTH_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"] if TRIAL else [])
if (host := urlsplit(BASE_URL).hostname) and host not in ALLOWED_HOSTS:
    ALLOWED_HOSTS.append(f"[{host}]" if ":" in host else host)
# Jupyter through the portal: a workspace is at `<id>.<this domain>`. Nothing else may use the domain. Empty: off.
WORKSPACE_DOMAIN = env.str("BERTH_WORKSPACE_DOMAIN", default="localhost" if TRIAL else "").lower()
# SSH through Berth (`manage.py ssh_jump`): the public name (empty: off) and port, and the address to listen on.
SSH_JUMP_HOST = env.str("BERTH_SSH_JUMP_HOST", default="")
SSH_JUMP_PORT = env.int("BERTH_SSH_JUMP_PORT", default=2222)
SSH_JUMP_LISTEN = env.str("BERTH_SSH_JUMP_LISTEN", default="127.0.0.1:2222")
SSH_JUMP_HOST_KEY_FILE = env.str("BERTH_SSH_JUMP_HOST_KEY_FILE", default="")
CSRF_TRUSTED_ORIGINS = env.list("BERTH_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "portal.apps.PortalAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "channels",
    "csp",
    "django_htmx",
    "django_filters",
    "django_q",
    "rest_framework",
    "drf_spectacular",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.mfa",
    "vitals",
    "accounts",
    "clusters",
    "quotas",
    "storage",
    "workloads",
    "workspaces",
    "jobs",
    "monitoring",
    "portal",
    "portal.up",
]

MIDDLEWARE = [
    "portal.middleware.RequestContext",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "portal.middleware.PersonalPreferences",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "portal.middleware.RefusalPages",
    "accounts.rest.idempotency.IdempotencyMiddleware",  # last: it calls the view
]

ROOT_URLCONF = "portal.urls"
ASGI_APPLICATION = "portal.asgi.application"
WSGI_APPLICATION = None

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

# --- Database. Connections differ by process: threads of the web server share a pool, and so do those of the watcher,
# which has some forty for each cluster; forked workers must not inherit one (it corrupts the protocol), and keep one
# connection each instead.
DATABASES: dict[str, Any] = {"default": from_url(env.db_url, "DATABASE_URL")}
# A machine that loses power does not close its connections. With these options PostgreSQL frees what its sessions hold
# (rows, locks) after some twenty seconds instead of TCP's two hours, and clients notice a dead database as fast.
DATABASES["default"]["OPTIONS"] = {
    "application_name": session_name(ROLE, sys.argv),
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    # Planning a statement costs PostgreSQL several times what executing it does: keep the plans of a connection.
    "server_side_binding": True,
    "prepare_threshold": 3,
    "options": "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3",
    **to_the_primary(DATABASES["default"]),
    **DATABASES["default"].get("OPTIONS", {}),
}
if ROLE in ("web", "ssh-jump"):
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": 12,
        "timeout": 10,
        "reconnect_timeout": 2,
    }
elif ROLE == "watcher":
    # Large enough that a cluster that hangs, whose looks keep their connections until they time out, delays no other.
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": 60,
        "max_idle": 60,
        "timeout": 5,
        "reconnect_timeout": 2,
    }
else:
    DATABASES["default"]["CONN_MAX_AGE"] = 60
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True  # after an outage no request gets a dead connection
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# A burst (hundreds of workspaces admitted in one transaction) must fit into a consumer's queue: messages beyond its
# capacity are dropped.
CHANNEL_LAYERS = {
    "default": {"BACKEND": "portal.channel_layer.NotifyLayer", "CONFIG": {"capacity": 10_000}},
}

# retry must exceed timeout * (2 + queue_limit / workers), or a slow task is run twice at once.
Q_CLUSTER: dict[str, Any] = {
    "name": "berth",
    "broker_class": "portal.queue.broker.NotifyBroker",
    "orm": "default",
    "workers": env.int("BERTH_WORKERS", default=4),
    "queue_limit": env.int("BERTH_WORKERS", default=4),
    "bulk": 1,
    "poll": 1,
    "timeout": 120,
    "retry": 480,
    "max_attempts": 3,
    "save_limit": -1,
    "catch_up": False,
    "scheduler": False,
    "label": "Tasks",
}

# Modules whose functions are tasks. The worker runs no others, whatever is in the queue (portal/queue/data.py).
TASK_MODULES = ("accounts.tasks", "clusters.errands.tasks", "quotas.tasks", "monitoring.tasks")

# --- People
AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [  # in this order: a password of Berth's lets in while the directory is away
    "django.contrib.auth.backends.ModelBackend",
    "accounts.directory.backend.DirectoryBackend",
]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "workspaces"
LOGOUT_REDIRECT_URL = "sign-in"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "accounts.credentials.passwords.LongEnough"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

# --- Sign-on (docs/operator/sign-on.md). We use parts of allauth, but none of its pages. Its limits would need a cache;
# ours are in rows (accounts/credentials/sign_in.py).
OIDC = provider_from(os.environ)
LDAP = directory_from(os.environ)
# People who may sign in with a password of Berth: everybody, or admins only (for when the provider is away).
PASSWORDS_FOR = env.str("BERTH_PASSWORDS_FOR", default="everybody")
if PASSWORDS_FOR not in ("everybody", "admins"):
    raise ImproperlyConfigured("BERTH_PASSWORDS_FOR must be everybody or admins.")
STAFF_NEED_SECOND_FACTOR = env.bool("BERTH_STAFF_SECOND_FACTOR", default=not TRIAL)
ACCOUNT_RATE_LIMITS = False
ACCOUNT_EMAIL_VERIFICATION = "none"
MFA_ADAPTER = "accounts.sign_on.second_factor.Adapter"
MFA_TOTP_TOLERANCE = 1  # half a minute early or late

# How long before a preemption of borrowed GPUs their users are warned.
RECLAIM_GRACE = timedelta(minutes=env.float("BERTH_RECLAIM_GRACE_MINUTES", default=10))

# --- Mail: in a trial into files, in production by BERTH_EMAIL_URL; without it, none is sent.
if env.str("BERTH_EMAIL_URL", default=""):
    vars().update(from_url(env.email_url, "BERTH_EMAIL_URL"))
elif TRIAL:
    EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
    EMAIL_FILE_PATH = str(state_dir() / "mail")
else:
    EMAIL_BACKEND = "django.core.mail.backends.dummy.EmailBackend"
EMAIL_TIMEOUT = 10  # seconds for each answer of the server
DEFAULT_FROM_EMAIL = env.str("BERTH_MAIL_FROM", default=f"Berth <berth@{urlsplit(BASE_URL).hostname}>")

# --- Security: cookies and transport. Only a trial speaks plain HTTP, on loopback.
# `__Host-`: a page of another host of the same domain, such as a workspace, cannot set these cookies.
COOKIE_PREFIX = "" if TRIAL else "__Host-"
SESSION_ENGINE = "accounts.credentials.sessions"
SESSION_COOKIE_NAME = f"{COOKIE_PREFIX}berth_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = not TRIAL
CSRF_COOKIE_NAME = f"{COOKIE_PREFIX}berth_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = not TRIAL
SECURE_SSL_REDIRECT = not TRIAL
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz(/web)?$", r"^metrics$"]
# For Berth's own name alone: hosts below it, such as workspaces, may be another team's.
SECURE_HSTS_SECONDS = 0 if TRIAL else env.int("BERTH_HSTS_SECONDS", default=31_536_000)
SILENCED_SYSTEM_CHECKS = ["security.W004", "security.W005", "security.W021"]
SECURE_CONTENT_TYPE_NOSNIFF = True
# Not no-referrer: browsers would then send “Origin: null” with our own forms, and CSRF checks refuse that.
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
if env.bool("BERTH_BEHIND_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "manifest-src": [SELF],
    }
}

# --- Language, time, static files
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文"), ("ko", "한국어")]  # each in its own language
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = "portal.formats"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = Path(env.str("BERTH_STATIC_ROOT", default=str(state_dir() / "collected")))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
if DEBUG or env.bool("BERTH_PLAIN_STATIC", default=False):
    STORAGES["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"

# --- API
REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "accounts.rest.authentication.TokenAuthentication",
        "accounts.rest.authentication.SignedInSession",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.rest.rates.WithinRate", "accounts.rest.permissions.InScope"],
    "DEFAULT_PAGINATION_CLASS": "accounts.rest.pagination.KeysetPagination",
    "DEFAULT_FILTER_BACKENDS": [
        "django_filters.rest_framework.DjangoFilterBackend",
        "accounts.rest.search.BoundedSearch",
    ],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["accounts.rest.serializers.NestingJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "accounts.rest.errors.handle",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "DATETIME_FORMAT": "iso-8601",
}
# Requests per minute: of a person, for all tokens together and separately for the browser; and of an address without
# sign-in. 0: no limit.
API_RATES = {
    "read": env.int("BERTH_READS_PER_MINUTE", default=6000),
    "write": env.int("BERTH_WRITES_PER_MINUTE", default=1200),
    "launch": env.int("BERTH_LAUNCHES_PER_MINUTE", default=600),
    "export": env.int("BERTH_EXPORTS_PER_MINUTE", default=12),
    "stranger": env.int("BERTH_STRANGERS_PER_MINUTE", default=600),
}
# Months for which the audit trail is kept, besides the one that runs. 0: for ever.
TRAIL_MONTHS = env.int("BERTH_TRAIL_MONTHS", default=24)
if TRAIL_MONTHS < 0:
    raise ImproperlyConfigured("BERTH_TRAIL_MONTHS must be a number of months, or 0 for no end.")
# Days and size of the logs of a tenant that are kept; an admin can set others for one tenant.
LOG_DAYS = env.int("BERTH_LOG_DAYS", default=30)
LOG_MIB = env.int("BERTH_LOG_MIB", default=10_240)
if not 1 <= LOG_DAYS <= 3650 or LOG_MIB < 1:
    raise ImproperlyConfigured("BERTH_LOG_DAYS must be 1 to 3650 days, and BERTH_LOG_MIB at least 1 MiB.")
# Days for which records of runs that failed are kept, after everything else of them may be gone.
POST_MORTEM_DAYS = env.int("BERTH_POST_MORTEM_DAYS", default=180)
if not 1 <= POST_MORTEM_DAYS <= 3650:
    raise ImproperlyConfigured("BERTH_POST_MORTEM_DAYS must be 1 to 3650 days.")
# Where the site keeps logs besides, shown beside a log: see docs/operator/logs.md for its placeholders.
LOGS_URL = env.str("BERTH_LOGS_URL", default="")
if LOGS_URL and not LOGS_URL.startswith(("https://", "http://")):
    raise ImproperlyConfigured("BERTH_LOGS_URL must be an address that begins with https:// or http://.")
SPECTACULAR_SETTINGS = {
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "accounts.rest.schema.with_idempotency_key",
    ],
    "SERVE_PERMISSIONS": ["accounts.rest.rates.WithinRate"],
    "TITLE": "Berth",
    "DESCRIPTION": "Self-service GPU workspaces on Kubernetes.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    # Choices that several bodies have, beside others of the same field name.
    "ENUM_NAME_OVERRIDES": {
        "AnnouncementLevelEnum": "accounts.announcements.models.Announcement.Level",
        "EventLevelEnum": "workloads.models.EventRow.Level",
        "JobPhaseEnum": "jobs.models.Phase.choices",
        "NoticeKindEnum": "accounts.notices.kinds.Kind",
        "RoleEnum": "accounts.models.Role",
        "ScopeEnum": "accounts.models.Scope",
        "SeverityEnum": "monitoring.alerts.api.SEVERITIES",
        "ShareRoleEnum": "workspaces.models.ShareRole",
        "VolumeKindEnum": "storage.models.Kind.choices",
    },
}

# File that each part touches while its main loop moves, for a probe of Kubernetes.
SIGN_OF_LIFE = env.str("BERTH_SIGN_OF_LIFE", default="")

# Token with which Prometheus asks for /metrics. Without one, /metrics is closed outside a trial.
METRICS_TOKEN = metrics_token(env.str("BERTH_METRICS_TOKEN", default=""))

# --- Clusters
# Kubeconfig files may start programs (exec plugins); that is code on this machine, so the operator opts in.
ALLOW_EXEC_PLUGINS = env.bool("BERTH_ALLOW_EXEC_PLUGINS", default=False)

# --- Logs: plain lines in a trial, JSON in production; never request bodies, headers, query strings or environment.
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"berth": {"()": "portal.logs.formatter", "as_json": not TRIAL}},
    "filters": {"own_details": {"()": "portal.logs.OwnDetails"}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "berth", "filters": ["own_details"]}
    },
    "loggers": {
        # One line per task would drown what matters.
        "django-q": {"level": "WARNING"},
        # The servers' own lines name the whole address: they pass our format, which cuts what is secret there. However
        # uvicorn was started, it keeps no list of all requests.
        "uvicorn": {"handlers": [], "propagate": True},
        "uvicorn.access": {"handlers": [], "propagate": False},
        "django.server": {"handlers": [], "propagate": True},
    },
    "root": {"handlers": ["stderr"], "level": env.str("BERTH_LOG_LEVEL", default="INFO")},
}
