"""A small network with a real node and missing values.

The data are 5,000 visits drawn from a known network with a fixed seed by ``tools/make_demo_data.py``; a sixth of the
X-rays was not taken.
"""

from __future__ import annotations

import suffice as sf
from suffice.demo.exhibits import Exhibit, bundled

DATA = bundled("infections.csv.gz")
STRUCTURE = {"cough": ["smoker", "infection"], "temperature": ["infection"], "xray": ["infection"]}


def incomplete_rows() -> Exhibit:
    """EM sums over what was not seen, here every sixth X-ray; the temperature is a real number."""
    net = sf.BayesianNetwork(STRUCTURE, prior=1.0).fit(DATA)
    seen = {"cough": "yes", "temperature": 38.4}
    finding = (
        "P(infection | cough, 38.4 degrees):",
        str(net.query("infection", given=seen)),
        "and with a shadow in the X-ray:",
        str(net.query("infection", given={**seen, "xray": "shadow"})),
    )
    about = "Five variables, one of them a number, 5,000 rows; every sixth X-ray was not taken."
    return Exhibit(
        "infections", "A network of states and numbers, learned from rows with missing values", about, finding, net
    )
