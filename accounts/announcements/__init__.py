"""Announcements of admins on every page, and maintenance: a time from which nothing new is launched."""
