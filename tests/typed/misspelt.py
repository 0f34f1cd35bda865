"""Mistakes that a checker finds: each line is an error, which both checkers must say, or call the comment unneeded."""

import suffice as sf


def mistakes(law: sf.Normal, net: sf.BayesianNetwork, mrf: sf.MarkovNetwork, model: sf.GLM) -> None:
    law.meen_  # type: ignore[attr-defined]  # noqa: B018
    law.report_.certficate  # type: ignore[attr-defined]  # noqa: B018
    net.nosuch_  # type: ignore[attr-defined]  # noqa: B018
    net.fitt({})  # type: ignore[attr-defined]
    net.table("a").valeus  # type: ignore[attr-defined]  # noqa: B018
    mrf.weigths_  # type: ignore[attr-defined]  # noqa: B018
    model.coeficients_  # type: ignore[attr-defined]  # noqa: B018
    model.summary().parms  # type: ignore[attr-defined]  # noqa: B018
    sf.GLM("poison")  # type: ignore[arg-type]
    sf.GLM("poisson", link="logg")  # type: ignore[arg-type]
    sf.GLM("poisson", solver="l-bfgs")  # type: ignore[arg-type]
    sf.MarkovNetwork("a - b", solver="ifp")  # type: ignore[arg-type]
    sf.BayesianNetwork("a -> b", missing="drop")  # type: ignore[arg-type]
    sf.BayesianNetwork("a -> b", priors=1.0)  # type: ignore[call-arg]
    sf.Normal(estimate="mode")  # type: ignore[arg-type]
    law.mean_.upper()  # type: ignore[attr-defined]
