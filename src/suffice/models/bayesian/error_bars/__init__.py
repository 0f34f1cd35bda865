"""What the spread of the parameters of a network makes of its answers: derivatives, error bars, sensitivity."""
