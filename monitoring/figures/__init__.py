"""Figures over time: `store` takes samples, `thinning` thins older ones, `series` is what pages and API show."""
