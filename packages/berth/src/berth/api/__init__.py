"""Requests of Berth's API and the shapes of what it takes and answers."""
