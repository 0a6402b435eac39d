"""The portal's own door to Jupyter, for browsers that reach Berth alone and not the workspaces' addresses.

A workspace has a host name of its own, `<id>.<BERTH_WORKSPACE_DOMAIN>`: what runs in it is its person's code, and must
share an origin neither with Berth nor with another workspace. On the way:

1. the portal's page `workspaces/<id>/jupyter/` asks who it is, and hands over a ticket for one use (`passes`);
2. `/_berth/enter` on the workspace's host takes the ticket for a cookie of that host alone (`door`);
3. every request with that cookie goes on to Jupyter with its token, which the browser never sees (`carry`, `sockets`).

A pass ends with the session that it came from, and with its person's right to the workspace.
"""
