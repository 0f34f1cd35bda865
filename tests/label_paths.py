"""Chains written out in full: every path of labels of every sequence, one by one."""

import itertools
from typing import Any

import numpy as np


def path_score(x: Any, path: Any, states: Any, transitions: Any, start: Any = None, end: Any = None) -> Any:
    """The sum of all weights along a path; x (steps, features), states (features, labels)."""
    total = sum(float(x[t] @ states[:, label]) for t, label in enumerate(path))
    total += sum(transitions[a, b] for a, b in itertools.pairwise(path))
    total += 0.0 if start is None else start[path[0]]
    return total + (0.0 if end is None else end[path[-1]])


def all_paths(x: Any, states: Any, transitions: Any, **ends: Any) -> Any:
    """Every path with its probability."""
    size = states.shape[1]
    paths = list(itertools.product(range(size), repeat=len(x)))
    scores = np.array([path_score(x, path, states, transitions, **ends) for path in paths])
    weights = np.exp(scores - scores.max())
    return paths, weights / weights.sum(), scores


def log_likelihood(X: Any, Y: Any, states: Any, transitions: Any, **ends: Any) -> Any:
    """The sum over sequences of log p(y | x)."""
    total = 0.0
    for x, y in zip(X, Y, strict=True):
        _, _, scores = all_paths(x, states, transitions, **ends)
        top = scores.max()
        total += path_score(x, y, states, transitions, **ends) - top - np.log(np.exp(scores - top).sum())
    return total


def features(x: Any, path: Any, size: Any) -> Any:
    """Sums of state features (features, labels) and of transitions (labels, labels) along a path."""
    states, transitions = np.zeros((x.shape[1], size)), np.zeros((size, size))
    for t, label in enumerate(path):
        states[:, label] += x[t]
    for a, b in itertools.pairwise(path):
        transitions[a, b] += 1.0
    return states, transitions


def gradient(x: Any, y: Any, states: Any, transitions: Any) -> Any:
    """The gradient of log p(y | x) by enumeration, states and transitions in one vector."""
    size = states.shape[1]
    paths, probabilities, _ = all_paths(x, states, transitions)
    found = np.concatenate([part.ravel() for part in features(x, y, size)])
    for path, p in zip(paths, probabilities, strict=True):
        found -= p * np.concatenate([part.ravel() for part in features(x, path, size)])
    return found


def random_sequences(seed: Any, count: Any = 6, width: Any = 3, size: Any = 3, longest: Any = 4) -> Any:
    """Dense sequences with labels 0 .. size - 1, every label and every transition seen."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, size=count)
    X = [rng.normal(size=(length, width)) for length in lengths]
    Y = [[int(label) for label in rng.integers(0, size, size=length)] for length in lengths]
    Y[0][0] = size - 1
    return X, Y
