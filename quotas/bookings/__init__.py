"""Bookings: GPUs of a pool reserved for a tenant for a fixed time, and the calendar that shows them."""
