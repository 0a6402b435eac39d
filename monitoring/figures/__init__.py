"""Figures over time: `store` takes samples, `thinning` keeps less of the older, `series` is what pages and API show."""
