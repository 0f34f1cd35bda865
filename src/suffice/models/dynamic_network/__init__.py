"""Networks through time: one small network for each slice, linked to the slices before it."""
