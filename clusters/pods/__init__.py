"""Pods of Berth: what every room that makes some needs."""
