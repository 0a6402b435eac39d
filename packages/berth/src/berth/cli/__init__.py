"""The command `berth`: `main` puts the commands together, `exits` has the exit codes."""
