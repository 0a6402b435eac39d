"""Settings for the type checker, which loads Django but connects to nothing."""

import os

os.environ.setdefault("BERTH_SECRET_KEY", "for-types-only")
os.environ.setdefault("DATABASE_URL", "postgres:///types")

from portal.settings import *  # noqa: F403
