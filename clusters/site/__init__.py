"""Settings of a site for the pods of its people: sign-ons to registries, environment, and certificates to trust."""
