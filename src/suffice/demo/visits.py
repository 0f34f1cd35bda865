"""A Poisson regression: visits to a doctor by age, smoking and drugs, drawn with a fixed seed."""

from __future__ import annotations

import suffice as sf
from suffice.demo.exhibits import Exhibit, bundled

COLUMNS = ["age", "smoker", "drugs"]


def regression() -> Exhibit:
    """Coefficients with their standard errors, read from a file."""
    model = sf.GLM("poisson").fit(str(bundled("visits.csv.gz")), "visits", columns=COLUMNS)
    table = str(model.summary()).partition("\n\n")[2]
    finding = (table, "The rows were drawn with age 0.012, smoker 0.35, drugs 0.15 and intercept -0.6.")
    about = f"{model.report_.rows:,} people: log E[visits] = intercept + age + smoker + drugs."
    return Exhibit("visits", "A generalised linear model of visits to a doctor", about, finding, model)
