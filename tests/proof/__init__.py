"""That the main path holds: killed anywhere, cut off anywhere, many at once. `make test-slow` prints what was found."""
