"""Settings for the type checker, which loads Django but connects to nothing."""

import os

os.environ.setdefault("BERTH_BASE_URL", "https://berth.example")
os.environ.setdefault("BERTH_SECRET_KEY", "for-types-only-" + "0" * 50)
os.environ.setdefault("DATABASE_URL", "postgres:///types")

from portal.settings import *  # noqa: F403
