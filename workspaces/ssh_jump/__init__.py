"""SSH to workspaces through Berth, for people who can reach only Berth: `ssh -J person@berth:2222 jovyan@berth-<id>`.

A separate process (`manage.py ssh_jump`); any number may run. A person's ssh can do one thing here: open a channel to
a workspace of theirs, and speak SSH with the workspace itself through it. So the jump sees no command, no file and no
key. It checks the person (`rights`), finds the workspace, and carries bytes (`carry`). There is no shell, no forwarding
to anywhere else, and no name lookup: a workspace is found by rows alone.

A tunnel ends when its person loses the right to the workspace, or another run takes its place (`guest`).
"""
