"""What changes about a person, told to the rooms above inside the transaction. Receivers enqueue, no more."""

from django.dispatch import Signal

# A person's SSH keys became other ones: their running workspaces must learn it. Arguments: user (User).
ssh_keys_changed = Signal()

# A person was deactivated, taken out of a tenant, or has another role: what is open must be checked anew.
# Arguments: user (User).
access_changed = Signal()
