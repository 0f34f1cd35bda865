"""MATCH: methods that make prediction equal answer. They see a vector and a function, never a model."""
