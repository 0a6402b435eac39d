"""Where a language is told otherwise than Django tells it."""
