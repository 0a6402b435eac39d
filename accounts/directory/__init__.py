"""People of an LDAP directory: sign-in with their password there, and the nightly sync that ends what left."""
