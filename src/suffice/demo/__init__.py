"""The main job on bundled data: from a file to fitted, certified, saved models.

The data are 5,000 visits to a clinic, drawn with a fixed seed by ``tools/make_demo_data.py``; so are those of the
network in `infections`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import suffice as sf
from suffice.demo import infections
from suffice.families.exponential import ExponentialFamily

DATA = Path(__file__).with_name("clinic.csv.gz")


def run(folder: Path, say: Callable[[str], None]) -> None:
    """Fit one law to each column, show what a prior, a summary and a certificate do, and write the models."""
    folder.mkdir(parents=True, exist_ok=True)
    say(f"suffice {sf.__version__}: 5,000 visits to a clinic, one law for each column\n")
    laws: dict[str, ExponentialFamily] = {
        "ward": sf.Categorical(),
        "smoker": sf.Bernoulli(states=("no", "yes"), prior=1.0),
        "visits": sf.Poisson(prior=sf.Gamma(shape=1, rate=1)),
        "wait": sf.Gamma(),
        "temperature": sf.Normal(prior=sf.NormalInverseGamma(alpha=2, beta=1, gamma=1, delta=37)),
    }
    for name, law in laws.items():
        law.fit(DATA, columns=[name])
        law.write(folder / f"{name}.json")
        say(f"--- {name}: {_parameters(law)}")
        say(f"{law.report_}\n")
    _beyond_a_point(laws["temperature"], say)
    _summaries(say)
    say("")
    infections.run(folder, say)
    say(f"The fitted models are in {folder}{'' if str(folder).endswith('/') else '/'}. Try next:")
    say(f"  python -c \"import suffice as sf; print(sf.read('{folder / 'wait.json'}').quantile([0.5, 0.95]))\"")
    say(f"  python -c \"import suffice as sf; print(sf.read('{folder / 'infections.bif'}').query('infection'))\"")


def _parameters(law: ExponentialFamily) -> str:
    found = (f"{name} = {value}" for name, value in law.parameters_.items())
    return ", ".join(found)


def _beyond_a_point(law: ExponentialFamily, say: Callable[[str], None]) -> None:
    low, high = law.credible_intervals(0.95)["mean"]
    say(f"95 % of the posterior puts the mean temperature between {low:.3f} and {high:.3f}.")
    say(f"The next temperature is Student-t: 95 % below {float(law.predictive_.quantile(0.95)):.2f}.\n")


def _summaries(say: Callable[[str], None]) -> None:
    whole = sf.Gamma().fit(DATA, columns=["wait"])
    wait = whole.sample(1_000, random_state=0)
    first, second = (sf.summarize(sf.Gamma(), part) for part in (wait[:400], wait[400:]))
    merged = sf.Gamma().fit(first + second)
    together = sf.Gamma().fit(wait)
    undone = sf.Gamma().fit(wait).unlearn(wait[400:])
    alone = sf.Gamma().fit(wait[:400])
    say("Summaries add and subtract: statistics of two sites, merged, give the same fit as all rows together:")
    say(f"  shape {merged.shape_:.12f} and {together.shape_:.12f}")
    say("and rows can be unlearned, as if they had never been seen:")
    say(f"  shape {undone.shape_:.12f} and {alone.shape_:.12f}")
