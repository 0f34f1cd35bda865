"""Hidden variables and missing values of Markov networks: learning by expectation and maximisation."""
