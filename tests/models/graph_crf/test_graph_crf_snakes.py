"""The snakes: pictures whose labels follow from all cells together (Nowozin and others 2011)."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

SNAKES = Path(__file__).resolve().parents[4] / "shared" / "data" / "sequences" / "snakes_grid.json.gz"


def snake_of(picture: Any) -> Any:
    """Colours around each pixel as features of nodes; colours of both ends, by direction, as features of edges."""
    colours = np.array([[0, 0, 255], [0, 255, 0], [0, 255, 255], [255, 0, 0], [255, 255, 0]])
    pixels = np.array(picture)
    one = (pixels[:, :, None] == colours).all(axis=3).astype(float)
    height, width = one.shape[:2]
    padded = np.zeros((height + 2, width + 2, 5))
    padded[:, :, 0] = 1.0
    padded[1:-1, 1:-1] = one
    around = [padded[i : i + height, j : j + width] for i in range(3) for j in range(3)]
    grid = sf.GraphExample.grid(np.concatenate(around, axis=2), directions=True)
    ends = one.reshape(-1, 5)[grid.edges].reshape(-1, 10)
    features = np.concatenate([ends * grid.edge_features[:, [0]], ends * grid.edge_features[:, [1]]], axis=1)
    return sf.GraphExample(grid.nodes, grid.edges, features)


@pytest.mark.skipif(not SNAKES.exists(), reason="the snakes are not on this machine")
def test_snakes() -> None:
    """All 200 pictures to learn from and all 100 to label; the figures are those that the documents report."""
    data = json.loads(gzip.decompress(SNAKES.read_bytes()))
    X, y = [snake_of(x) for x in data["X_train"]], [np.array(y) for y in data["Y_train"]]
    new, truth = [snake_of(x) for x in data["X_test"]], [np.array(y) for y in data["Y_test"]]
    model = sf.GraphCRF(sf.Normal(variance=1.0), random_state=0, tolerance=1e-3).fit(X, y)
    assert model.converged_
    assert not model.report_.certificate.exact
    assert "pseudo-likelihood" in str(model.report_.plan)
    inside = np.concatenate([labels.ravel() for labels in truth]) > 0

    def right(fitted: Any, examples: Any) -> Any:
        found = np.concatenate(fitted.predict(examples)) == np.concatenate([labels.ravel() for labels in truth])
        return found.mean(), found[inside].mean()

    assert right(model, new) == pytest.approx((0.998, 0.994), abs=0.003)
    alone = sf.GraphCRF(sf.Normal(variance=1.0), tolerance=1e-3).fit([sf.GraphExample(x.nodes) for x in X], y)
    assert right(alone, [sf.GraphExample(x.nodes) for x in new]) == pytest.approx((0.831, 0.365), abs=0.003)
