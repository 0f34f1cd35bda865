"""Missing values and hidden nodes: learning by expectation and maximisation."""
