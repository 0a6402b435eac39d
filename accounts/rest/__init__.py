"""How every room's REST speaks: who asks, errors, lists, retries. Views get the person by `actor_of(request)`."""
