"""Rows of latent classes and of a cycle with gaps, and their observed likelihood by listing every joint state."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

import suffice as sf
from log_linear import design_of, joint_states, law_of, table_features

Floats = NDArray[np.float64]

ITEMS = list("abcd")
CLASSES = [("H", item) for item in ITEMS]
CYCLE = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]
CYCLE_STATES = {name: [0, 1] for name in "ABCD"}


def class_rows(n: int = 150, seed: int = 0) -> dict[str, list[int]]:
    """Rows of two classes with four items."""
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.6
    return {
        item: (rng.random(n) < np.where(label, 0.85, 0.2 + 0.1 * k)).astype(int).tolist()
        for k, item in enumerate(ITEMS)
    }


def cycle_rows(n: int, seed: int, holes: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """Rows of a cycle of four, whole and with gaps."""
    rng = np.random.default_rng(seed)
    law = sf.MarkovNetwork(CYCLE, states=CYCLE_STATES).with_weights(rng.normal(size=16))
    whole = {str(name): values.tolist() for name, values in law.sample(n, random_state=seed).items()}
    return whole, {name: [None if rng.random() < holes else x for x in values] for name, values in whole.items()}


class Oracle:
    """The observed log-likelihood by listing every joint state."""

    def __init__(self, design: Floats, states: dict[str, list[Any]], rows: dict[str, Any]) -> None:
        self.design = design
        listed = joint_states(states)
        n = len(next(iter(rows.values())))
        agree = [
            [all(rows[name][row] in (None, x[name]) for name in rows if name in x) for x in listed] for row in range(n)
        ]
        self.agree = np.array(agree, dtype=float)

    def rows(self, weights: Floats) -> Floats:
        """Log-probability of each row."""
        return np.asarray(np.log(self.agree @ law_of(self.design, weights)[1]))

    def posterior(self, weights: Floats) -> Floats:
        """P(joint state | row) of each row."""
        joint = self.agree * law_of(self.design, weights)[1]
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def slope(self, weights: Floats) -> Floats:
        """Gradient of the summed log-likelihood."""
        _, law = law_of(self.design, weights)
        return np.asarray((self.posterior(weights).sum(axis=0) - len(self.agree) * law) @ self.design)

    def best(self, start: Floats, precision: float = 0.0) -> Floats:
        """What a generic optimiser finds from a start, with a normal prior of mean 0."""

        def smooth(w: Any) -> tuple[float, Floats]:
            return float(0.5 * precision * w @ w - self.rows(w).sum()), np.asarray(precision * w - self.slope(w))

        found = minimize(smooth, np.asarray(start), jac=True, method="BFGS", options={"gtol": 1e-9})
        return np.asarray(found.x)


def class_oracle(rows: dict[str, Any], classes: int = 2) -> Oracle:
    states = {"H": list(range(classes)), **{item: [0, 1] for item in ITEMS}}
    return Oracle(design_of(table_features(CLASSES, states), states), states, rows)


def cycle_oracle(rows: dict[str, Any]) -> Oracle:
    return Oracle(design_of(table_features(CYCLE, CYCLE_STATES), CYCLE_STATES), CYCLE_STATES, rows)
