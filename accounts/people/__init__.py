"""People's accounts, managed by admins. What a person's roles are is in `accounts/members.py`."""
