"""What a release rests on: one version, a changelog to be read, checks of wheel and sdist that find what is wrong."""

import base64
import email
import hashlib
import importlib
import io
import re
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path
from typing import Any

import pytest

import suffice

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module `tools/release.py`."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.delitem(sys.modules, "release", raising=False)
    return importlib.import_module("release")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# Habits ---------------------------------------------------------------------------------------------------------------


def test_the_version_is_written_once(release: Any) -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert "version" not in PROJECT
    written = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*.py")
        if f'"{suffice.__version__}"' in path.read_text(encoding="utf-8")
    ]
    assert written == [str(Path("src/suffice/__init__.py"))]
    assert release.version_in(text("src/suffice/__init__.py")) == suffice.__version__


def test_the_workflow_runs_on_every_python_that_is_promised() -> None:
    promised = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.MULTILINE)
    (matrix,) = re.findall(r"^ +python: \[(.*)\]$", text(".github/workflows/ci.yml"), re.MULTILINE)
    assert re.findall(r'"([\d.]+)"', matrix) == promised
    assert f">={promised[0]}" == PROJECT["requires-python"]


def test_hooks_before_a_commit_run_what_the_build_runs() -> None:
    hooks = re.findall(r"^ +entry: python -m (\w+(?: \w+)?)", text(".pre-commit-config.yaml"), re.MULTILINE)
    build = text(".ci/run")
    assert hooks[:3] == ["ruff check", "ruff format", "mypy"]
    assert [hook for hook in hooks[:3] if f"python -m {hook}" not in build] == []


def test_entries_of_the_changelog_are_one_line_each(release: Any) -> None:
    changelog = text("CHANGELOG.md")
    versions = release.sections_of(changelog)
    assert versions[0] == "Unreleased"
    assert len(set(versions)) == len(versions)
    body = changelog[changelog.index("## [Unreleased]") :].splitlines()
    titles = re.compile(r"## \[.*|### (Added|Changed|Deprecated|Removed|Fixed|Security)|- .{10,158}|")
    assert [line for line in body if not titles.fullmatch(line)] == []


def test_entries_of_the_changelog_say_different_things() -> None:
    entries = [line for line in text("CHANGELOG.md").splitlines() if line.startswith("- ")]
    words = [set(re.findall(r"\w+", entry.lower())) for entry in entries]
    doubled = [
        (entries[i], entries[k])
        for i, one in enumerate(words)
        for k, other in enumerate(words[:i])
        if 2 * len(one & other) > len(one | other)
    ]
    assert doubled == []


def test_no_rows_lie_at_the_root() -> None:
    data = {".arrow", ".csv", ".db", ".duckdb", ".json", ".npy", ".npz", ".parquet", ".suffice", ".tsv"}
    assert [path.name for path in ROOT.iterdir() if path.suffix in data] == []


# The checks of the release script -------------------------------------------------------------------------------------

ABOUT = "suffice-1.2.0.dist-info"
METADATA = """\
Metadata-Version: 2.4
Name: suffice
Version: 1.2.0
Summary: Learns
Author: Somebody
License-Expression: BSD-3-Clause
License-File: LICENSE
Requires-Python: >=3.11
Classifier: Programming Language :: Python :: 3.11
Description-Content-Type: text/markdown

# suffice
"""
SOURCES = ["src/suffice/__init__.py", "src/suffice/py.typed"]
FILES = {
    "suffice/__init__.py": "__version__ = '1.2.0'\n",
    "suffice/py.typed": "",
    f"{ABOUT}/METADATA": METADATA,
    f"{ABOUT}/WHEEL": "Wheel-Version: 1.0\n",
    f"{ABOUT}/entry_points.txt": "[console_scripts]\n",
    f"{ABOUT}/licenses/LICENSE": "BSD\n",
}


def wheel(folder: Path, record: str | None = None, **changes: str | None) -> Path:
    """A small wheel whose RECORD is true, with some files changed, added or, where they are None, left out."""
    files = {name: content for name, content in {**FILES, **changes}.items() if content is not None}
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content.encode())}")
    path = folder / "suffice-1.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr(f"{ABOUT}/RECORD", record or "\n".join([*lines, f"{ABOUT}/RECORD,,"]))
    return path


def test_a_good_wheel_passes(release: Any, tmp_path: Path) -> None:
    assert release.wrong_in_wheel(wheel(tmp_path), SOURCES, "1.2.0") == []


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"suffice/py.typed": None}, "suffice/py.typed is missing"),
        ({"suffice/left.py": ""}, "suffice/left.py is not a tracked file"),
        ({"tests/test_a.py": ""}, "tests/test_a.py is not a tracked file"),
        ({f"{ABOUT}/entry_points.txt": None}, "entry_points.txt is missing"),
        ({"record": f"suffice/gone.py,sha256=x,1\n{ABOUT}/RECORD,,"}, "RECORD lists suffice/gone.py"),
        ({"record": f"{ABOUT}/RECORD,,"}, "RECORD does not give the hash and the length of suffice/__init__.py"),
        ({f"{ABOUT}/METADATA": METADATA.replace("Version: 1.2.0", "Version: 1.3.0")}, "says version 1.3.0"),
    ],
)
def test_what_is_wrong_with_a_wheel_is_named(release: Any, tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    wrong = release.wrong_in_wheel(wheel(tmp_path, **changes), SOURCES, "1.2.0")
    assert any(named in line for line in wrong), wrong


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("Summary: Learns\n", "", "no Summary"),
        ("License-Expression: BSD-3-Clause\n", "", "no License-Expression"),
        ("text/markdown", "text/plain", "Markdown"),
        ("# suffice\n", "", "description is empty"),
        ("Python :: 3.11", "Python :: 3.12", "no classifier names Python 3.11"),
        (
            "Description-Content",
            "Classifier: License :: OSI Approved\nDescription-Content",
            "beside License-Expression",
        ),
    ],
)
def test_what_is_wrong_with_metadata_is_named(release: Any, old: str, new: str, named: str) -> None:
    def wrong(metadata: str) -> list[str]:
        message: Message = email.message_from_string(metadata)
        return list(release.wrong_in_metadata(message, "1.2.0"))

    assert wrong(METADATA) == []
    assert any(named in line for line in wrong(METADATA.replace(old, new, 1)))


def sdist(folder: Path, names: list[str], link: str = "") -> Path:
    path = folder / "suffice-1.2.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"suffice-1.2.0/{name}"), io.BytesIO())
        if link:
            member = tarfile.TarInfo(link)
            member.type = tarfile.SYMTYPE
            archive.addfile(member)
    return path


def test_a_good_sdist_passes(release: Any, tmp_path: Path) -> None:
    assert release.wrong_in_sdist(sdist(tmp_path, [*release.IN_SDIST, *SOURCES]), SOURCES) == []


@pytest.mark.parametrize(
    "litter", ["src/suffice/__pycache__/a.py", "a/.mypy_cache/b.json", "src/suffice/k.nbi", "docs/_build/index.html"]
)
def test_litter_in_an_sdist_is_named(release: Any, tmp_path: Path, litter: str) -> None:
    wrong = release.wrong_in_sdist(sdist(tmp_path, [*release.IN_SDIST, *SOURCES, litter]), SOURCES)
    assert wrong == [f"suffice-1.2.0.tar.gz: {litter} is litter"]


def test_files_that_are_missing_or_lead_elsewhere_are_named(release: Any, tmp_path: Path) -> None:
    names = [name for name in release.IN_SDIST if name != "LICENSE"]
    wrong = release.wrong_in_sdist(sdist(tmp_path, names, link="suffice-1.2.0/../x"), SOURCES)
    found = " ".join(wrong)
    for named in ("LICENSE is missing", "src/suffice/__init__.py is missing", "outside", "neither a file nor a folder"):
        assert named in found


CHANGES = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2030-01-01\n\n### Added\n\n- A thing.\n"


def test_a_release_may_be_tagged(release: Any) -> None:
    assert release.wrong_with_tag("1.2.0", CHANGES, ["v1.1.0"], "") == []


@pytest.mark.parametrize(
    ("version", "tags", "changes", "named"),
    [
        ("1.2.0.dev0", [], "", "not the version of a release"),
        ("1.3.0", [], "", "no section [1.3.0]"),
        ("1.2.0", ["v1.2.0"], "", "a tag v1.2.0 already"),
        ("1.2.0", [], " M README.md", "not committed"),
    ],
)
def test_what_keeps_a_version_from_a_tag_is_named(
    release: Any, version: str, tags: list[str], changes: str, named: str
) -> None:
    assert any(named in line for line in release.wrong_with_tag(version, CHANGES, tags, changes))


def test_a_file_without_a_version_is_refused(release: Any) -> None:
    with pytest.raises(ValueError, match="__version__"):
        release.version_in("version = '1'")
