"""What admins configure, as objects with a natural key: as one YAML file, and one by one over REST."""
