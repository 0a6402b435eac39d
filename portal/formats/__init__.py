"""Date formats of languages in which Django's own are wrong: one form of a date on all pages."""
