"""Rank, flat directions and kind of point of an observed information; the starts that reached the best objective."""

import math

import numpy as np
import pytest

import suffice as sf
from suffice.models.em.identifiability import curvature, same_maximum, spectrum


def test_a_definite_information_is_a_maximum_with_the_errors_of_its_inverse() -> None:
    root = np.random.default_rng(0).normal(size=(5, 9)) * np.array([[1e-3], [1.0], [30.0], [0.2], [1.0]])
    information = root @ root.T
    found = spectrum(information)
    slopes = np.random.default_rng(1).normal(size=(3, 5))
    expected = np.sqrt(np.diag(slopes @ np.linalg.inv(information) @ slopes.T))
    assert (found.rank, found.point, found.flat.shape) == (5, "maximum", (5, 0))
    np.testing.assert_allclose(found.errors(slopes), expected, rtol=1e-10)


def test_what_a_sum_alone_determines_is_flat_in_the_difference() -> None:
    # Two parameters of which the rows see the sum, one they see itself: I = u u' + w w'.
    information = 50 * np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 4.0]])
    found = spectrum(information)
    assert (found.rank, found.point) == (2, "flat")
    np.testing.assert_allclose(np.abs(found.flat[:, 0]), [math.sqrt(0.5), math.sqrt(0.5), 0.0], atol=1e-12)
    errors = found.errors(np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [1.0, 1.0, 0]]))
    np.testing.assert_allclose(errors, [np.inf, np.inf, 1 / math.sqrt(200), 1 / math.sqrt(50)], rtol=1e-10)
    assert found.names(["a", "b", "c"]) in (("a (+), b (-)",), ("b (+), a (-)",))


def test_flat_directions_of_a_plane_each_have_a_coordinate_of_their_own() -> None:
    normal = np.array([1.0, 2.0, -1.0, 0.0])
    found = spectrum(np.outer(normal, normal) + np.diag([0.0, 0.0, 0.0, 1.0]))
    flat = found.flat
    assert flat.shape == (4, 2)
    np.testing.assert_allclose((normal / found.scale) @ flat, 0.0, atol=1e-10)
    own = [np.flatnonzero((np.abs(flat[:, at]) > 1e-9) & (np.abs(flat[:, 1 - at]) < 1e-9)) for at in (0, 1)]
    assert all(len(rows) for rows in own)


def test_a_coordinate_without_information_is_flat_and_not_scaled_up() -> None:
    found = spectrum(np.diag([100.0, 3e-11, 0.0]))
    assert (found.rank, found.point) == (1, "flat")
    assert np.isinf(found.errors(np.eye(3))[1:]).all()


def test_the_information_of_complete_rows_is_the_unit() -> None:
    # Alone each coordinate looks determined; complete rows would say a million times as much.
    information = np.diag([1e-4, 50.0])
    assert spectrum(information).rank == 2
    assert spectrum(information, complete=np.array([100.0, 100.0])).rank == 1


@pytest.mark.parametrize("x", [0.2, 1e-2, 1e-3])
def test_a_maximum_that_is_flat_to_fourth_order_is_flat_wherever_em_stops(x: float) -> None:
    # -x^4 / 12 has the slope x^3 / 3, which is EM's step in units of complete information, and the curvature x^2.
    assert spectrum(np.diag([1.0, x**2]), complete=np.ones(2), step=x**3 / 3).rank == 1


def test_a_weak_curvature_counts_once_em_has_gone_far_enough() -> None:
    weak = np.diag([1.0, 1e-3])
    assert spectrum(weak, step=1e-9, complete=np.ones(2)).rank == 2
    assert spectrum(weak, step=1e-5, complete=np.ones(2)).rank == 1


def test_a_negative_eigenvalue_is_a_saddle() -> None:
    information = np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    found = spectrum(information)
    assert (found.point, found.rank) == ("saddle", 2)
    errors = found.errors(np.array([[1.0, 0, 0], [0, 0, 1.0], [1.0, 1.0, 0]]))
    assert np.isnan(errors[0])
    np.testing.assert_allclose(errors[1:], [1.0, math.sqrt(2 / 3)])


def test_starts_that_reach_the_best_objective_are_counted() -> None:
    assert same_maximum([-10.0, -10.0004, -12.0, -math.inf]) == (2, 4)
    assert same_maximum([-math.inf]) == (0, 1)
    assert same_maximum([]) == (0, 0)
    # Objectives of a billion nats differ by rounding and by where EM stopped.
    assert same_maximum([-1e9, -1e9 - 0.5, -1e9 - 5]) == (2, 3)


def test_the_receipt_says_what_is_flat_and_how_many_starts_agreed() -> None:
    found = curvature(spectrum(np.array([[1.0, 1.0], [1.0, 1.0]])), ["p", "q"], [-5.0, -5.0, -7.0])
    text = "\n".join(f"{label}: {line}" for label, line in found.lines())
    assert "rank 1 of 2" in text
    assert "2 of 3 reached the best objective" in text
    assert "not identified: the rows determine 1 of 2 parameters" in found.warnings()[0]
    certificate = sf.Certificate(0.0, curvature=found)
    assert ("information", dict(found.lines())["information"]) in certificate.lines()
    assert "saddle" in curvature(spectrum(np.diag([1.0, -1.0])), ["p", "q"], [1.0]).warnings()[0]


def test_curvature_survives_a_file() -> None:
    found = curvature(spectrum(np.array([[1.0, 1.0], [1.0, 1.0]])), ["p", "q"], [-5.0, -5.0])
    report = sf.Report(
        model="m", rows=1, weight=1.0, passes=1, method="EM", estimate="maximum likelihood", log_likelihood=-1.0,
        objective=-1.0, n_params=2, certificate=sf.Certificate(0.0, curvature=found),
    )  # fmt: skip
    assert sf.Report.from_dict(report.to_dict()) == report
