"""XMLBIF: the table order of the format, its inline DTD, and XML that means harm."""

import dataclasses
import gzip
import io
import re
from pathlib import Path

import numpy as np
import pytest

from network_files import largest_difference, read_by_pgmpy, read_by_pyagrum, same, shared, sprinkler
from suffice.domain import Domain, Variable
from suffice.errors import FileFormatError, OptionError
from suffice.formats import bif, xmlbif
from suffice.formats.networks import TableNetwork

DTD = """<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
      <!ATTLIST BIF VERSION CDATA #REQUIRED>
  <!ELEMENT NETWORK ( NAME, ( PROPERTY | VARIABLE | DEFINITION )* )>
  <!ELEMENT NAME (#PCDATA)>
  <!ELEMENT VARIABLE ( NAME, ( OUTCOME |  PROPERTY )* ) >
      <!ATTLIST VARIABLE TYPE (nature|decision|utility) "nature">
  <!ELEMENT OUTCOME (#PCDATA)>
  <!ELEMENT DEFINITION ( FOR | GIVEN | TABLE | PROPERTY )* >
  <!ELEMENT FOR (#PCDATA)>
  <!ELEMENT GIVEN (#PCDATA)>
  <!ELEMENT TABLE (#PCDATA)>
  <!ELEMENT PROPERTY (#PCDATA)>
]>
"""

SPRINKLER = """<BIF VERSION="0.3">
<NETWORK>
<NAME>sprinkler</NAME>
<PROPERTY>author somebody</PROPERTY>
<VARIABLE TYPE="nature"><NAME>season</NAME><OUTCOME>dry</OUTCOME><OUTCOME>wet</OUTCOME></VARIABLE>
<VARIABLE>
  <NAME> rain </NAME>
  <OUTCOME>none</OUTCOME><OUTCOME>some</OUTCOME><OUTCOME>much</OUTCOME>
  <PROPERTY>position = (1, 2)</PROPERTY>
</VARIABLE>
<VARIABLE TYPE="nature">
  <NAME>grass</NAME>
  <OUTCOME>dry</OUTCOME><OUTCOME>damp</OUTCOME><OUTCOME>wet</OUTCOME><OUTCOME>flooded</OUTCOME>
</VARIABLE>
<DEFINITION><FOR>season</FOR><TABLE>0.75 0.25</TABLE></DEFINITION>
<!-- The node is fastest, then the last of the given. -->
<DEFINITION>
  <FOR>grass</FOR><GIVEN>season</GIVEN><GIVEN>rain</GIVEN>
  <TABLE>
    0.5 0.25 0.125 0.125        <!-- season=dry, rain=none -->
    0.125 0.5 0.25 0.125        <!-- season=dry, rain=some -->
    0.0625 0.0625 0.375 0.5     <!-- season=dry, rain=much -->
    0.25 0.25 0.25 0.25         <!-- season=wet, rain=none -->
    0.0625 0.1875 0.3125 0.4375
    0 0 0 1
  </TABLE>
</DEFINITION>
<DEFINITION><FOR>rain</FOR><GIVEN>season</GIVEN><TABLE>0.5 0.375 0.125 0.1 0.2 0.7</TABLE></DEFINITION>
</NETWORK>
</BIF>
"""

FILES = ["alarm.bifxml", "alarm.converted.bifxml", "dog.bifxml", "hailfinder.bifxml.gz"]


def network_text(body: str) -> str:
    return f'<BIF VERSION="0.3"><NETWORK>{body}</NETWORK></BIF>'


COIN = "<VARIABLE><NAME>coin</NAME><OUTCOME>head</OUTCOME><OUTCOME>tail</OUTCOME></VARIABLE>"
FAIR = "<DEFINITION><FOR>coin</FOR><TABLE>0.5 0.5</TABLE></DEFINITION>"


@pytest.mark.parametrize("head", ["", '<?xml version="1.0"?>\n', f'<?xml version="1.0" encoding="US-ASCII"?>\n{DTD}'])
def test_a_file_gives_its_network(head: str) -> None:
    network = xmlbif.parse(head + SPRINKLER)
    wanted = {"name": "sprinkler", "network": ("author somebody",), "variables": {"rain": ("position = (1, 2)",)}}
    assert same(network, dataclasses.replace(sprinkler(), properties=wanted))
    assert same(xmlbif.parse(xmlbif.render(network)), network)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1", "windows-1252"])
def test_bytes_are_decoded_as_their_declaration_says(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>' + network_text(COIN + FAIR)
    found = xmlbif.load(io.BytesIO(text.replace("head", "blå").encode(encoding)))
    assert found.domain["coin"].states == ("blå", "tail")


def test_text_was_decoded_before_whatever_its_declaration_says() -> None:
    text = '<?xml version="1.0" encoding="utf-16"?>' + network_text(COIN + FAIR).replace("head", "blå")
    assert xmlbif.parse(text).domain["coin"].states == ("blå", "tail")
    assert xmlbif.load(io.StringIO(text)).domain["coin"].states == ("blå", "tail")


def test_labels_that_xml_must_escape(tmp_path: Path) -> None:
    states = ["<5", "a & b", "]]>", "two\nlines", '"quoted"', "ü字", "\ttabs\tinside".strip(), ""]
    domain = Domain([Variable.discrete("a<b & c", states)])
    network = TableNetwork(
        domain, {"a<b & c": ()}, {"a<b & c": np.full(8, 0.125)}, (), {"variables": {"a<b & c": ("<&>",)}}
    )
    xmlbif.save(tmp_path / "net.bifxml.gz", network)
    assert gzip.decompress((tmp_path / "net.bifxml.gz").read_bytes()).startswith(b"<?xml")
    assert same(xmlbif.load(tmp_path / "net.bifxml.gz"), network)


@pytest.mark.parametrize(
    ("label", "reason"),
    [
        (" a", "with blanks around it"),
        ("a\n", "with blanks"),
        ("a\x01b", "with a control character"),
        ("\uffff", "control"),
    ],
)
def test_labels_that_xml_cannot_give_back_are_refused(label: str, reason: str) -> None:
    network = TableNetwork(Domain([Variable.discrete(label, ["x"])]), {label: ()}, {label: np.ones(1)})
    with pytest.raises(OptionError, match=reason):
        xmlbif.render(network)
    with pytest.raises(OptionError, match=r"A property is 'a.x02', with a control character"):
        xmlbif.render(dataclasses.replace(sprinkler(), properties={"network": ("a\x02",)}))


LAUGHS = '<!DOCTYPE BIF [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("head", "body", "reason"),
    [
        (LAUGHS, "&b;", "line 1, column 27: the DTD declares an entity"),
        ('<!DOCTYPE BIF [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "&x;", "the DTD declares an entity"),
        ('<!DOCTYPE BIF [<!ENTITY % x "<!ELEMENT BIF ANY>"> %x;]>', "", "the DTD declares an entity"),
        ('<!DOCTYPE BIF SYSTEM "http://localhost/no.dtd">', "&x;", "an entity that is not declared"),
        ("", "&x;", "undefined entity"),
        (f'<!DOCTYPE BIF [<!ATTLIST NAME A CDATA "{"a" * 1000}">]>', "", "more or longer attributes"),
        (f"<!DOCTYPE BIF [{'<!ATTLIST NAME A CDATA #IMPLIED>' * 200}]>", "", "more or longer attributes"),
        ("", "<a>" * 100 + "</a>" * 100, "too many elements"),
    ],
)
def test_xml_that_means_harm_is_refused(head: str, body: str, reason: str) -> None:
    with pytest.raises(FileFormatError, match=reason):
        xmlbif.parse(head + network_text(f"<NAME>{body}</NAME>" + COIN + FAIR))


def test_an_external_dtd_is_not_fetched(tmp_path: Path) -> None:
    (tmp_path / "bif.dtd").write_text('<!ENTITY x "fetched">')
    head = f'<!DOCTYPE BIF SYSTEM "{(tmp_path / "bif.dtd").as_uri()}">'
    assert xmlbif.parse(head + network_text("<NAME>n</NAME>" + COIN + FAIR)).properties["name"] == "n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: not well-formed XML: no element found"),
        ("<BIF><NETWORK></BIF>", "line 1, column 17: not well-formed XML: mismatched tag"),
        ("<smile/>", "found <smile>; expected <BIF>"),
        ("<BIF/>", "the file has 0 elements <NETWORK>; expected one"),
        (network_text(""), "line 1, column 1: no variable is declared"),
        (network_text("<VARIABLE/>"), "line 1, column 29: a variable has 0 elements <NAME>"),
        (network_text('<VARIABLE TYPE="utility"><NAME>u</NAME></VARIABLE>'), "variable 'u' is of type 'utility'"),
        (network_text("<VARIABLE><NAME>u</NAME></VARIABLE>"), "variable 'u' has no states"),
        (network_text(COIN), "line 1, column 29: node 'coin' has no table"),
        (network_text(COIN + COIN), "variable 'coin' is declared twice"),
        (network_text(COIN + FAIR + FAIR), "node 'coin' has two tables"),
        (network_text(COIN + "<DEFINITION/>"), "a definition has 0 elements <FOR>"),
        (network_text(COIN + FAIR.replace("<TABLE>0.5 0.5</TABLE>", "")), "has 0 elements <TABLE>"),
        (network_text(COIN + FAIR.replace("0.5 0.5", "0.5")), "the table of node 'coin' has 1 values; expected 2"),
        (network_text(COIN + FAIR.replace("0.5 0.5", "0.5 NaN")), "value 2 of <TABLE> is 'NaN'; expected a number"),
        (network_text(COIN + FAIR.replace("0.5 0.5", "0.5, 0.5")), "value 1 of <TABLE> is '0.5,'; expected a number"),
        (network_text(COIN + FAIR.replace("0.5 0.5", "-0.5 1.5")), "node 'coin' holds -0.5"),
        (
            network_text(COIN + FAIR.replace("<TABLE>", "<GIVEN>x</GIVEN><TABLE>")),
            "has the parent 'x', which is no variable",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
        xmlbif.parse(text, "file.bifxml")
    assert re.match(r"file\.bifxml, line \d+, column \d+: .*\.\Z", str(caught.value), re.DOTALL)


def test_an_unknown_encoding_is_an_error_of_the_file() -> None:
    with pytest.raises(FileFormatError, match="line 1, column"):
        xmlbif.parse(b'<?xml version="1.0" encoding="no-such-code"?><BIF/>')


@pytest.mark.parametrize("name", FILES)
def test_a_real_file_survives_writing(name: str) -> None:
    network = xmlbif.load(shared(f"bn/{name}"))
    assert same(xmlbif.parse(xmlbif.render(network)), network)


def test_alarm_is_the_same_in_both_formats() -> None:
    one, two = xmlbif.load(shared("bn/alarm.converted.bifxml")), bif.load(shared("bn/alarm.bif.gz"))
    found = {
        str(node): (
            [str(parent) for parent in two.parents[node]],
            {str(name): [str(state) for state in two.domain[name].states] for name in two.domain},
            two.tables[node],
        )
        for node in two.domain
    }
    assert largest_difference(one, found) < 3e-7


@pytest.mark.parametrize("name", ["sprinkler", "asia", "sachs", "alarm", "child", "win95pts"])
def test_other_libraries_read_what_is_written(tmp_path: Path, name: str) -> None:
    network = sprinkler() if name == "sprinkler" else bif.load(shared(f"bn/{name}.bif.gz"))
    xmlbif.save(tmp_path / "net.bifxml", network)
    assert largest_difference(network, read_by_pgmpy("XMLBIFReader", tmp_path / "net.bifxml")) == 0.0
    assert largest_difference(network, read_by_pyagrum(tmp_path / "net.bifxml")) == 0.0


@pytest.mark.parametrize("name", FILES)
def test_pyagrum_reads_the_same_from_a_real_file(tmp_path: Path, name: str) -> None:
    # It keeps rounded rows as they are printed: 0.3333333 is 3.3e-8 from a third, and 0.333333 ten times that.
    data = shared(f"bn/{name}").read_bytes()
    (tmp_path / "net.bifxml").write_bytes(gzip.decompress(data) if name.endswith(".gz") else data)
    assert largest_difference(xmlbif.load(shared(f"bn/{name}")), read_by_pyagrum(tmp_path / "net.bifxml")) < 1e-6
