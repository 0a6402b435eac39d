"""The portal's proxy to Jupyter, for browsers that can reach Berth but not the workspaces' addresses.

Each workspace has its own host name, `<id>.<BERTH_WORKSPACE_DOMAIN>`: it runs its owner's code, which must share an
origin neither with Berth nor with another workspace. The steps:

1. the portal's page `workspaces/<id>/open/` checks who asks, and issues a ticket for one use (`passes`);
2. `/_berth/enter` on the workspace's host exchanges the ticket for a cookie of that host alone (`door`);
3. every request with that cookie goes on to Jupyter with its token, which the browser never sees (`carry`, `sockets`).

A pass ends with the session that it came from, and with its person's right to the workspace.
"""
