"""Layers before the views in a web process: limits of bodies, shares of its threads, the door of agents."""
