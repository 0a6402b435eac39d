"""REST API of volumes."""
