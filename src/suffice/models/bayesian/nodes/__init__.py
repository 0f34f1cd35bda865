"""The kinds of node: what each asks for, learns and answers."""
