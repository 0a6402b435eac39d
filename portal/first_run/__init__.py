"""The first-run guide: from an empty installation to a running workspace. Nothing of it is stored."""
