"""Date formats of languages in which Django's own are wrong."""
