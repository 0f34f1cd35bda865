"""A mistake is one sentence on stderr that says what was found and what to do, exit code 2, and nothing on stdout."""

import json
from pathlib import Path

import pytest

import suffice as sf
from command_line import Command

FIT = ("fit", "rain -> wet", "rows.csv")
GLM = ("--model", "glm")

MISTAKES = {
    "no such command": (("frobnicate",), "No such command 'frobnicate'. See suffice --help."),
    "no such option": (("score", "net.json", "rows.csv", "--weigth", "x"), "No such option: --weigth"),
    "misspelt command": (("fitt",), "No such command 'fitt'. Did you mean 'fit'? See suffice --help."),
    "evidence beside the variable": (
        ("query", "net.json", "wet", "rain=yes"),
        "What is known is given by --given rain=yes.",
    ),
    "number of draws": (("sample", "net.json", "3"), "takes no rows here. Give their number by -n 3."),
    "rows before the structure": (
        ("fit", "rows.csv", "rain -> wet"),
        "The structure comes first, then the rows: suffice fit STRUCTURE DATA.",
    ),
    "formula of a regression": (("fit", "wet ~ rain", "rows.csv"), "on the command line to --model glm."),
    "model by another name": ((*FIT, "--model", "markov-chain"), "Did you mean 'chain'?"),
    "argument left out": (("query",), "Missing argument 'MODEL'. See suffice query --help."),
    "structure alone": (("fit", "rain -> wet"), "Expected STRUCTURE and DATA; found only 'rain -> wet'."),
    "missing data": (("fit", "rain -> wet", "nowhere.csv"), "There is no file 'nowhere.csv'."),
    "missing glob": (("fit", "rain -> wet", "nowhere-*.csv"), "No file matches 'nowhere-*.csv'."),
    "missing structure": (("fit", "nowhere.bif", "rows.csv"), "There is no file 'nowhere.bif'. Expected a file (.bif"),
    "missing model": (("show", "nowhere.json"), "No such file or directory: nowhere.json"),
    "missing text": (("fit", "nowhere.txt", "--model", "crf"), "There is no file 'nowhere.txt'."),
    "folder that is not there": (
        (*FIT, "-o", "nowhere/net.json"),
        "no folder 'nowhere' to write 'net.json' into.",
    ),
    "folder of a report": ((*FIT, "--report", "nowhere/net.html"), "There is no folder 'nowhere'"),
    "ending of a model": ((*FIT, "-o", "net.doc"), "'net.doc' has no known ending; known: .json, .suffice"),
    "ending of rows": (
        ("sample", "net.json", "-o", "rows.doc"),
        "rows are written to .csv, .csv.gz, .jsonl or",
    ),
    "prediction of a distribution": (
        ("predict", "law.json", "rows.csv"),
        "A Normal predicts nothing from other columns.",
    ),
    "two kinds of edges": (
        ("fit", "rain -> wet; wet -- x", "rows.csv"),
        "has arrows (rain -> wet) and lines",
    ),
    "lines for arrows": (
        ("fit", "rain -- wet", "rows.csv", "--model", "bayes"),
        "--model bayes takes arrows",
    ),
    "arrows for lines": ((*FIT, "--model", "markov"), "--model markov takes lines, as in 'A -- B'."),
    "open end": (("fit", "rain ->", "rows.csv"), "names no variable at one end"),
    "cycle": (("fit", "rain -> wet; wet -> rain", "rows.csv"), "cycle"),
    "unknown column": (("fit", "rain -> fog", "rows.csv"), "There is no column 'fog' in the data."),
    "many integers": (
        ("fit", "id -> wet", "many.csv"),
        "--states id=discrete for states, or --states id=real for numbers",
    ),
    "unknown weight": ((*FIT, "--weight", "heavy"), "There is no column 'heavy' in the data."),
    "unknown model": ((*FIT, "--model", "forest"), "--model 'forest': expected one of bayes, markov, gaussian, glm"),
    "wrong option": (
        (*FIT, "--option", "priors=1"),
        "A BayesianNetwork takes no --option priors; its options are states",
    ),
    "wrong value": ((*FIT, "--option", "n_init=none"), "n_init is 'none'; expected a whole number"),
    "no value": ((*FIT, "--option", "n_init"), "--option 'n_init': expected name=value."),
    "wrong solver": (("fit", "rain -- wet", "rows.csv", "--solver", "magic"), "solver is 'magic'; expected one of"),
    "wrong prior": (
        ("fit", "rain -- wet", "rows.csv", "--prior", "beta:1"),
        "The prior 'beta:1' is not one of",
    ),
    "undeclared state": ((*FIT, "--states", "wet=dry,damp"), "'wet' holds"),
    "states of no file": ((*FIT, "--states", "nowhere.json"), "No such file or directory: nowhere.json"),
    "states that are none": (
        (*FIT, "--states", "bad-states.json"),
        "holds no states by variable; expected a dict",
    ),
    "group of a network": ((*FIT, "--group", "game"), "A network or a graph takes no --group here."),
    "hidden of a field": (("fit", "rain -- wet", "rows.csv", "--hidden", "h=2"), "hidden= names 'h', which no term"),
    "model as data": (("fit", "rain -> wet", "net.json"), "net.json holds a BayesianNetwork, not a summary."),
    "model to merge": (("merge", "net.json", "-o", "all.json"), "net.json holds a BayesianNetwork, not a summary."),
    "summary as model": (("score", "part.json", "rows.csv"), "A Summary has no likelihood"),
    "another summary": (("fit", "x -> z", "part.json"), "suffice: "),
    "unknown variable": (("query", "net.json", "fog"), "The model has no variable 'fog'; it has 'rain', 'wet'."),
    "unknown state": (
        ("query", "net.json", "rain", "--given", "wet=damp"),
        "has no state 'damp'; it has 'no', 'yes'.",
    ),
    "evidence without value": (("query", "net.json", "rain", "--given", "wet"), "--given 'wet': expected name=value."),
    "evidence that is no number": (
        ("query", "graph.json", "x", "--given", "z=big"),
        "is real; 'big' is not a number.",
    ),
    "query of a regression": (("query", "glm.json", "x"), "A GLM has no variables to ask about"),
    "unknown node": (("table", "net.json", "fog"), "The model has no variable 'fog'"),
    "table of a graph": (("table", "graph.json", "x"), "A GaussianGraph has no tables"),
    "no target": (
        ("predict", "net.json", "rows.csv"),
        "Say which variable to predict with --target",
    ),
    "shares of a number": (("predict", "graph.json", "rows.csv", "--target", "x", "--proba"), "'x' is real"),
    "target of a regression": (("predict", "glm.json", "rows.csv", "--target", "x"), "A GLM takes no --target here."),
    "rows of a network": (("sample", "net.json", "rows.csv"), "A BayesianNetwork takes no rows here."),
    "no rows for a regression": (("sample", "glm.json"), "A GLM draws responses for given rows"),
    "no response": (("score", "glm.json", "rows.csv", "--response", "nothing"), "nothing"),
    "nothing to explain": (("fit", "rows.csv", *GLM), "Say what to explain: a formula such as 'y ~ x + z' before DATA"),
    "two ways to explain": (("fit", "x ~ z", "rows.csv", *GLM, "--response", "x"), "Give a formula, or --response and"),
    "formula alone": (("fit", "x ~ z", *GLM), "Expected DATA after the formula 'x ~ z'; found none."),
    "summary of a regression": (("fit", "x ~ z", "part.json", *GLM), "A GLM needs rows"),
    "states of a regression": (
        ("fit", "x ~ z", "rows.csv", *GLM, "--states", "x=real"),
        "glm takes no --states",
    ),
    "wrong question": (("predict", "glm.json", "rows.csv", "--option", "kinds=link"), "predict has no option 'kinds'"),
    "hidden states not said": (("fit", "rows.csv", "--model", "hmm"), "Say how many hidden states there are"),
    "no such distribution": (
        ("fit", "rows.csv", "--model", "hmm", "--option", "states=2", "--option", "emission=lumpy", "--column", "x"),
        "There is no family 'lumpy'. Expected one of 'bernoulli'",
    ),
    "ragged text": (
        ("fit", "ragged.txt", "--model", "crf"),
        "ragged.txt, line 2: found 3 fields",
    ),
    "blank text": (("fit", "blank.txt", "--model", "crf"), "There are no sequences in the text"),
    "no labels": (("fit", "words.txt", "--model", "crf"), "have one field; expected at least two, the label last."),
    "not JSON": (("show", "cut.json"), "Cannot read 'cut.json': it is no valid JSON"),
    "another JSON": (("show", "other.json"), "Cannot read 'other.json': it is a JSON file of another kind"),
    "not a model": (("show", "rows.csv"), "'rows.csv' has no known ending"),
    "field to BIF": (
        ("convert", "field.json", "field.bif"),
        "holds Bayesian networks; a MarkovNetwork goes",
    ),
    "unknown ending": (("convert", "net.json", "net.doc"), "'net.doc' has no known ending"),
    "report of no model": (("report", "nowhere.json"), "No such file or directory: nowhere.json"),
    "report of rows": (("report", "rows.csv"), "'rows.csv' has no known ending"),
    "report of a summary": (("report", "part.json"), "'part.json' holds no report of a fit. Fit it"),
    "report into no folder": (("report", "net.json", "-o", "nowhere/net.html"), "nowhere"),
    "misspelt variable": (("query", "net.json", "rian"), "Did you mean 'rain'?"),
    "misspelt evidence": (("query", "net.json", "rain", "--given", "wte=yes"), "Did you mean 'wet'?"),
    "misspelt state": (("query", "net.json", "rain", "--given", "wet=yess"), "Did you mean 'yes'?"),
    "misspelt target": (("predict", "net.json", "rows.csv", "--target", "rian"), "Did you mean 'rain'?"),
    "misspelt node": (("table", "net.json", "rian"), "Did you mean 'rain'?"),
    "misspelt column": (("fit", "rian -> wet", "rows.csv"), "Did you mean 'rain'?"),
    "misspelt weight": ((*FIT, "--weight", "xx"), "There is no column 'xx'"),
    "misspelt model": ((*FIT, "--model", "bayess"), "Did you mean 'bayes'?"),
    "misspelt solver": (("fit", "rain -- wet", "rows.csv", "--solver", "l-bfgs"), "Did you mean 'lbfgs'?"),
    "misspelt option": ((*FIT, "--option", "n_inits=2"), "Did you mean 'n_init'?"),
    "option of hmmlearn": ((*FIT, "--option", "n_iter=5"), "Did you mean 'max_iter'?"),
    "option of pgmpy": ((*FIT, "--option", "pseudo_counts=5"), "Did you mean 'prior'?"),
    "option of scikit-learn": ((*FIT, "--option", "tol=5"), "Did you mean 'tolerance'?"),
    "misspelt family": (("fit", "x ~ z", "rows.csv", *GLM, "--option", "family=poison"), "Did you mean 'poisson'?"),
    "misspelt formula": (("fit", "x ~ zz", "rows.csv", *GLM), "'zz'"),
    "misspelt response": (("fit", "rows.csv", *GLM, "--response", "xx", "--column", "z"), "'xx'"),
    "misspelt term": (("fit", "rows.csv", *GLM, "--response", "x", "--column", "zz"), "'zz'"),
    "link that is none": (("fit", "x ~ z", "rows.csv", *GLM, "--option", "link=lgo"), "link is 'lgo'"),
    "switch that is none": (
        ("fit", "x ~ z", "rows.csv", *GLM, "--option", "fit_intercept=5"),
        "expected True or False",
    ),
    "seed that is none": ((*FIT, "--option", "random_state=-5"), "random_state is -5; expected a whole number"),
    "threads that are none": ((*FIT, "--option", "threads=0"), "threads is 0; expected a whole number"),
    "own parent": (("fit", "rain -> rain", "rows.csv"), "'rain' is its own parent. Remove"),
    "edge twice": (("fit", "rain -> wet; rain -> wet", "rows.csv"), "more than once. Give it once."),
    "score without data": (("score", "net.json"), "Missing argument"),
    "score of a missing file": (("score", "net.json", "nowhere.csv"), "There is no file 'nowhere.csv'."),
    "sample of words": (("sample", "net.json", "-n", "many"), "suffice: "),
    "question of a misspelt kind": (
        ("predict", "glm.json", "rows.csv", "--option", "kidn=link"),
        "Did you mean 'kind'?",
    ),
    "kind of prediction": (("predict", "glm.json", "rows.csv", "--option", "kind=lnik"), "kind is 'lnik'; expected"),
    "method of decoding": (("predict", "hmm.json", "rows.csv", "--option", "methd=x"), "suffice: "),
    "samples below none": (("sample", "net.json", "-n", "-3"), "suffice: "),
    "steps of a chain": (
        ("sample", "hmm.json", "-n", "1"),
        "Say how many steps each sequence is to have",
    ),
}


@pytest.fixture
def files(place: Path) -> None:
    net = sf.BayesianNetwork([("rain", "wet")]).fit("rows.csv")
    net.write("net.json")
    sf.MarkovNetwork([("rain", "wet")]).fit("rows.csv").write("field.json")
    sf.GaussianGraph([("x", "z")]).fit("rows.csv").write("graph.json")
    sf.Normal().fit("rows.csv", columns=["x"]).write("law.json")
    sf.GLM().fit("rows.csv", "x", columns=["z"]).write("glm.json")
    sf.HiddenMarkovModel(["a"], sf.Categorical()).fit(["HT"], states=["aa"]).write("hmm.json")
    from suffice.formats import write

    write(sf.summarize(net, "rows.csv"), "part.json")
    Path("many.csv").write_text("id,wet\n" + "".join(f"{k},{k % 2}\n" for k in range(60)))
    Path("cut.json").write_text(Path("net.json").read_text()[:200])
    Path("other.json").write_text('{"hello": "world"}')
    Path("bad-states.json").write_text(json.dumps([1, 2]))
    Path("ragged.txt").write_text("a B\nc d E\n")
    Path("blank.txt").write_text("\n\n")
    Path("words.txt").write_text("a\nb\n")


def test_there_are_a_hundred() -> None:
    assert len(MISTAKES) >= 100


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence(command: Command, files: None, name: str) -> None:
    arguments, said = MISTAKES[name]
    answer = command(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("suffice: ")
    assert answer.err.endswith("\n")
    assert answer.err.count("\n") == 1
    assert said in answer.err
    assert "Error:" not in answer.err


def test_a_page_is_made_of_a_saved_model(good: Command, files: None) -> None:
    assert good("report", "net.json").out == "written to net.html\n"
    assert "<html" in Path("net.html").read_text()
    assert json.loads(good("report", "net.json", "-o", "page.html", "--json").out)["file"] == "page.html"


def test_tables_with_tabs_are_read(good: Command, files: None) -> None:
    Path("rows.tsv").write_text(Path("rows.csv").read_text().replace(",", "\t"))
    assert good("score", "net.json", "rows.tsv").out == good("score", "net.json", "rows.csv").out
