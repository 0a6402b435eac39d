"""Common parts of the REST API: authentication, errors, lists, retries. Views get the person by `actor_of(request)`."""
