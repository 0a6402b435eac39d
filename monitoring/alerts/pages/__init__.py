"""Pages of alerts and of their routes."""
