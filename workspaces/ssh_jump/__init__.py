"""SSH to workspaces through Berth, for people who reach Berth alone: `ssh -J person@berth:2222 jovyan@berth-<id>`.

A process of its own (`manage.py ssh_jump`), any number of them. What a person's ssh does with it is one thing: open a
channel to a workspace of theirs, through which it speaks SSH with the workspace itself. So the jump sees no command, no
file and no key; it knows who is there (`rights`), finds the workspace, and carries bytes (`carry`). There is no shell,
no forwarding to anywhere else, and no name that leads to an address: a workspace is found by rows alone.

A tunnel ends when its person loses the right to the workspace, or what runs there is another (`guest`).
"""
