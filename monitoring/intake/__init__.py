"""Intake of reports from node agents: api.py authenticates and checks them, receive.py writes all that follows."""
