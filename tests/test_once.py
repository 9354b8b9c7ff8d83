"""What is written once: a second place would be forgotten when the first one changes."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
CODE = sorted([*ROOT.glob("autograder/**/*.py"), *ROOT.glob("book/**/*.py")])
# Where the gradebook's packages are loaded already when it is: nbgrader asks for it as its plugin
AFTERWARDS = {"collect"}


@pytest.mark.parametrize(
    ("literal", "what"),
    [
        (r"sys\.modules.*rfc3987_syntax", "what keeps jsonschema from loading rfc3987_syntax"),
        (r"colab\.research\.google\.com/github", "Colab's address"),
        (r"\.github\.io/", "the site's address"),
        (r"\b16 << 20", "how large a notebook may be"),
        (r"\.read\(MAX_FILE", "a bounded reading of a file"),
        ("○", "the dots of a difficulty"),
        (r'else "s"\)', "points in words"),
        (r"_config\.yml\"\)\.read", "the reading of the site's settings"),
    ],
)
def test_it_stands_in_one_place(literal, what):
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in CODE
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if re.search(literal, line.partition("  #")[0]) and '"""' not in line
    ]
    assert len(places) == 1, f"{what}: {places}"


def imported(path):
    """The packages and modules that a file imports when it is loaded, in their order."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_no_module_waits_for_a_check_of_addresses():
    """Two seconds of each command, of each build and of each run of the tests."""
    heavy = ("nbformat", "jupytext", "nbgrader", "nbclient", "nbconvert", "jupyter_book", "jsonschema")
    found = set()
    for path in CODE:
        names = list(imported(path))
        loads = [number for number, name in enumerate(names) if name.partition(".")[0] in heavy]
        if loads and path.stem not in AFTERWARDS:
            assert "autograder.no_rfc3987" in names[: loads[0]], path
            found.add(path.stem)
    assert {"build", "generate", "gradebook", "solution"} <= found
    code = "import sys, autograder.notebooks.generate\n"
    code += "print(sys.modules['rfc3987_syntax'], 'jsonschema' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "None True\n", done.stdout + done.stderr


def test_every_page_clones_the_repository_of_the_settings():
    repository = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["repository"]
    pages = [*ROOT.glob("book/**/*.md"), ROOT / "README.md", ROOT / "CITATION.cff"]
    named = [
        found
        for path in pages
        for found in re.findall(r"(?:git clone|repository-code:) https://github\.com/(\S+)", path.read_text("utf-8"))
    ]
    assert len(named) >= 3 and set(named) == {repository}
