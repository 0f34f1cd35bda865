"""An audit of the certificates: random problems for every model and solver, each judged by an oracle of its own."""
