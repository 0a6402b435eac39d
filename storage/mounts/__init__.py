"""What runs mount: the choice, the check, the lease."""
