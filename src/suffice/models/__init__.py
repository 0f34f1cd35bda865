"""ASK: models declare what they need; the fit they inherit joins source, engine and solver."""
