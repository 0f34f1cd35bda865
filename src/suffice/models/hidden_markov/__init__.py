"""Hidden Markov models: hidden states that follow a chain, each with a distribution of what is seen."""
