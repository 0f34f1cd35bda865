"""Questions to a fitted network."""
