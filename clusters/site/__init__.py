"""What a site gives the pods of its people: sign-ons to registries, environment, and certificates to trust."""
