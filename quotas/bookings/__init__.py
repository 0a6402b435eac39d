"""Bookings: GPUs of a pool that a tenant has for itself in a window, and the calendar that shows them."""
