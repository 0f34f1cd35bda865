"""How long states last: explicit distributions of durations, in place of the geometric ones of a plain chain."""
