"""Pages of volumes."""
