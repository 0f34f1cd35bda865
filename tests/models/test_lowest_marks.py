"""How many distinct rows there are, before they are brought together: by their lowest marks."""

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.models.em import held_rows
from suffice.models.em.held_rows import LowestMarks, mixed_bits
from suffice.models.em.rows import ObservedRows


@pytest.mark.parametrize("distinct", [5, 1023, 4_000, 300_000])
def test_the_number_of_distinct_marks_is_found_in_any_parts(distinct: int) -> None:
    marks = mixed_bits(np.arange(1, distinct + 1).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    parts = [LowestMarks(np.unique(marks[start::7])[:1024]) for start in range(7)]
    twice = [*parts, *reversed(parts)]
    whole = LowestMarks(np.unique(marks)[:1024])
    total = twice[0]
    for part in twice[1:]:
        total = total + part
    np.testing.assert_array_equal(total.marks, whole.marks)
    # Three standard errors of 1 / sqrt(1024); exact below as many marks as are kept.
    assert total.distinct == pytest.approx(distinct, rel=0.0 if distinct < 1024 else 0.1)


def test_many_distinct_rows_are_never_brought_together(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(12)
    frame = pd.DataFrame({name: rng.choice(list("abcdefgh"), 3_000) for name in "pqrs"})
    frame = frame.mask(rng.random(frame.shape) < 0.1)
    frame.to_parquet(f"{tmp_path}/rows.parquet", row_group_size=500)
    asked = list[int]()
    few = held_rows._few_rows

    def counted(rows: ObservedRows, most: int) -> held_rows.FewRows:
        asked.append(most)
        return few(rows, most)

    monkeypatch.setattr(held_rows, "_few_rows", counted)
    network = sf.BayesianNetwork([("p", "q"), ("r", "s")], max_iter=2, tolerance=1.0)
    gathered = network.clone().fit(f"{tmp_path}/rows.parquet")
    assert asked
    monkeypatch.setattr(held_rows, "FEW_NUMBERS", 4 * 1_000)
    asked.clear()
    stayed = network.clone().fit(f"{tmp_path}/rows.parquet")
    assert not asked
    assert stayed.report_.log_likelihood == pytest.approx(gathered.report_.log_likelihood, rel=1e-12)
