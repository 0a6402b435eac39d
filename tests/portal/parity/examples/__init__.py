"""Examples of the requests that the table names, by room."""
