"""Hidden variables and gaps of Markov networks: learning by expectation and maximisation."""
