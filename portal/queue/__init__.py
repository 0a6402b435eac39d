"""The task queue on PostgreSQL: its broker, and tasks as data."""
