"""Hidden Markov models: hidden states that follow a chain, each with a law of what is seen."""
