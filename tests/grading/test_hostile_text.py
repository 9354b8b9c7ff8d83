"""One hostile string in every place of a submission, followed through every command and every file that is written."""

import csv
import html
import io
import json
import os
import re
import time
import unicodedata
from html.parser import HTMLParser

import nbformat
import pytest
from build import STUDENTS, notebook, submit
from nbconvert import HTMLExporter
from nbformat.v4 import new_markdown_cell, new_notebook

from autograder import clean

PARTS = ["\x1b[2J\x1b[31m", "\x9b2J", "\u202e\u2066", "\u2028\u2029\x85", "\u200b\ufeff", "=cmd|' /C calc'!A0"]
PARTS += ["</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>"]
HOSTILE = "".join(PARTS)
FORGED = "\npatchify: passed, 3.00 / 3 points\nada  patchify  graded  12.00 / 12"


def hidden(text, breaks="\n"):
    return {c for c in text if c not in breaks and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


def hostile_notebook():
    made = notebook(STUDENTS["emil"])
    made["metadata"] = {"title": HOSTILE, "widgets": {"state": {"x": HOSTILE}}, "kernelspec": {"name": HOSTILE}}
    for text in (HOSTILE, "\ud800" + HOSTILE, HOSTILE + FORGED):
        cells = [
            {"cell_type": "markdown", "source": text, "attachments": {"x.png": {"image/png": HOSTILE}}},
            {"cell_type": "raw", "source": text, "metadata": {"raw_mimetype": "text/html"}},
            {"cell_type": "code", "source": f"raise ValueError({text!r})"},
            {"cell_type": "code", "source": f'# {text}\n"""{text}"""\n\x0c{text}'},
            {"cell_type": "code", "source": "1", "outputs": [
                {"output_type": "display_data", "data": {"text/html": text, "text/javascript": text}, "metadata": {}},
                {"output_type": "error", "ename": text, "evalue": text, "traceback": [text]}]},
        ]  # fmt: skip
        for cell in cells:
            cell.setdefault("metadata", {})["nbgrader"] = {"grade_id": text, "solution": True, "comment": text}
            cell["id"] = text
            made["cells"] += [cell, cell]
    message = f"def unpatchify(patches, H, W, P):\n    raise ValueError({HOSTILE + FORGED!r})"
    for cell in made["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "unpatchify":
            cell["source"] = message
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "conv_weight_to_linear":
            cell["source"] = f"def conv_weight_to_linear(W):\n    return {HOSTILE!r}"
    return made


@pytest.fixture(scope="module")
def hostile(module_course):
    course = module_course
    data = json.dumps(hostile_notebook())
    usable = HOSTILE.replace("/", "\u2215")[:60]
    for number, name in enumerate((f"{usable}.ipynb", f"\ud800{FORGED}.ipynb".replace("/", ""))):
        submit(
            course.folder,
            f"s{number}",
            data,
            name=name.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape"),
        )
    submit(course.folder, "mal", data)
    submit(course.folder, "=cmd|' !A0 <b onmouseover=x>", data)
    submit(course.folder, usable, data)
    submit(course.folder, "odd", data, assignment=usable)
    submit(course.folder, "mal", HOSTILE, name="timestamp.txt")
    for number in range(8):
        submit(course.folder, f"x{number}", notebook(STUDENTS["ada"]))
    course.files = [submit(course.folder, "../elsewhere", data, name=f"{usable}{n}.ipynb") for n in range(2)]
    for link in (course.folder / "elsewhere", course.folder / "submitted" / "elsewhere"):
        assert link.parent.exists()
    course.done = course.run("grade", status=None)
    return course


COMMANDS = ["grade", "grade --force --workers 1", "grade --dry-run --force", "list", "doctor", "forget mal", "export"]
COMMANDS += ["export --format canvas", "export --format moodle", "report", "report --json", "similar --threshold 0.01"]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_it(hostile, command):
    done = hostile.run(*command.split(), status=None)
    assert done.stdout
    assert not hidden(done.stdout)
    assert not hidden(done.stderr, "\n\r")
    assert not [line for line in done.stdout.split("\n") if re.match(r"patchify: passed|ada ", line)]


@pytest.mark.parametrize("command", ["grade-file", "grade-file --json", "inspect", "inspect --json"])
def test_no_command_on_a_file_prints_it(hostile, command):
    for path in hostile.files:
        done = hostile.run(*command.split(), path, status=None)
        assert done.stdout and not hidden(done.stdout + done.stderr)
        lines = [line for line in done.stdout.split("\n") if line.startswith("patchify: ")]
        assert len(lines) <= 2 and not [line for line in lines if "3.00 / 3 points" in line and line.count(":") > 2]
        assert not [line for line in done.stdout.split("\n") if line.startswith("ada ")]


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.add(tag)
        assert not [name for name, _ in attributes if name.startswith("on") or name in ("src", "srcdoc")], attributes


def test_no_file_that_is_written_holds_it(hostile):
    for command in ("report", "similar --threshold 0.01", "export --output scores.csv"):
        hostile.run(*command.split())
    seen = set()
    for path in hostile.folder.rglob("*"):
        inside = path.relative_to(hostile.folder).parts
        if not path.is_file() or inside[0] in ("submitted", "exercises", "elsewhere") or path.suffix in (".db", ".py"):
            continue
        text = path.read_text("utf-8")
        seen.add(path.suffix)
        assert not hidden(text, "\n\t"), path
        if path.suffix == ".html":
            assert not Page(text).found & {"script", "img", "iframe", "svg", "object", "embed"}
        if path.suffix == ".ipynb":
            made = nbformat.reads(text, as_version=4)
            nbformat.validate(made)
            assert "widgets" not in made.metadata
            for cell in made.cells:
                assert "attachments" not in cell
                if cell.cell_type != "code":
                    assert not Page(cell.source).found & {"script", "img"}
                assert all(out.output_type == "stream" for out in cell.get("outputs", []))
        if path.suffix == ".csv":
            for row in csv.reader(io.StringIO(text)):
                assert not [cell for cell in row if re.match(r"[=+@-]", cell) and "|" in cell]
    assert seen >= {".html", ".ipynb", ".json", ".log", ".csv"}


def test_all_that_is_printed_goes_one_way():
    """No `print` and no `stdout` of its own in what reads submissions; the table and JSON are clean by themselves."""
    folder = os.path.dirname(clean.__file__)
    makers = {"generate.py", "from_page.py", "mutants.py", "preview.py", "page.py", "judge.py", "clean.py", "inside.py"}
    for name in sorted(set(os.listdir(folder)) - makers):
        if name.endswith(".py"):
            with open(os.path.join(folder, name)) as file:
                found = re.findall(r"(?<![\w.\"`])print\(|sys\.std(?:out|err)\.write", file.read())
            assert found == (["sys.stdout.write"] if name == "__main__.py" else []), name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a < b and <script>x</script>", "a < b and &lt;script>x&lt;/script>"),
        ("[x](https://example.org) [y](#here) ![z](data:image/png;base64,AA)", None),
        ("[x](javascript:alert(1))", "[x&#93;(javascript:alert(1))"),
        ("[x](java&#115;cript:alert(1))", "[x&#93;(java&amp;#115;cript:alert(1))"),
        (
            "&#36;&#92;href{x}{y}&dollar; &bsol;href &nbsp;&lt;",
            "&amp;#36;&amp;#92;href{x}{y}&amp;dollar; &amp;bsol;href &nbsp;&lt;",
        ),
        ("[x](< javascript:alert(1)>)", "[x&#93;(< javascript:alert(1)>)"),
        ("[x]:\n javascript:alert(1)", "[x&#93;:\n javascript:alert(1)"),
        ("![x](data:text/html,x)", "&#33;[x&#93;(data:text/html,x)"),
        ("![x](data:image/png;base64,AA)![y](//example.org)", "![x](data:image/png;base64,AA)&#33;[y](//example.org)"),
        ("![a [b] c][x]\n\n[x]: http://example.org", "&#33;[a [b] c][x]\n\n[x]: http://example.org"),
        ("> ```` {.Mermaid}\n> graph TD", "> ```` {.mermaid-code}\n> graph TD"),
        ("~~~\\mermaid &#109;\nx & y", "~~~\\\\mermaid-code &amp;amp;#109;\nx & y"),
        ("$\\href{javascript:x}{y}$", "$\\text{macro }href{javascript:x}{y}$"),
        ("[x](&#" + "0" * 300 + "106;avascript:alert(1))", "[x&#93;(&amp;#" + "0" * 300 + "106;avascript:alert(1))"),
        ("[x](java" + "\t" * 190 + "script:x)", None),  # no link: a blank ends where it leads
        ("[x](" + "a" * 300 + ":x)", "[x&#93;(" + "a" * 300 + ":x)"),
        ("> [x]:\n> javascript:alert(1)", "> [x&#93;:\n> javascript:alert(1)"),
        ("[x](\u00a0javascript:alert(1))", "[x&#93;(\u00a0javascript:alert(1))"),
        ("![x](attachment:x.png)", "&#33;[x&#93;(attachment:x.png)"),
        (r"$\mmlToken{mi}[href='javascript:x']{y}$", r"$\text{macro }mmlToken{mi}[href='javascript:x']{y}$"),
        (r"$\style{position:fixed}{y} \classes$", r"$\text{macro }style{position:fixed}{y} \classes$"),
        ("[x](page.md) note: y, [z](../a?b=1&c=2), x[0]: 1", None),
        ("$a < b$ and `x[0]` and *y*", None),
    ],
)
def test_markdown_that_runs_nothing(text, shown):
    assert clean.markdown(text) == (text if shown is None else shown)


MACROS = [r"&#36;&#92;href{javascript:x}{y}&#36;", r"&dollar;&bsol;href{javascript:x}{y}&dollar;",
          r"&#36;\hr&#101;f{javascript:x}{y}&#36;", r"&#x24;\requir&#x65;{html}&#x24;",
          r"$&#92;style{position:fixed}{y}$"]  # fmt: skip


@pytest.mark.parametrize("text", MACROS)
def test_no_entity_becomes_a_macro_on_the_page(text):
    """MathJax reads the text of the page, in which nbconvert has put characters for entities."""

    def shown(source):
        page, _ = HTMLExporter().from_notebook_node(new_notebook(cells=[new_markdown_cell(source)]))
        (cell,) = re.findall(r'data-mime-type="text/markdown">(.*?)</div>', page, re.DOTALL)
        return html.unescape(cell)

    assert not re.search(r"\\(href|require|style)", shown(clean.markdown(text)))
    assert text[0] == "$" or re.search(r"\$\\(href|require|style)", shown(text))


@pytest.mark.parametrize("text", ["](", "](((", "](.", "](:", "]:x", "&#", "&a", "](a&lt"])
def test_markdown_is_cleaned_in_time(text):
    """One process writes down the whole class's grades, and a notebook may have 16 MB of it."""
    start = time.process_time()
    clean.markdown(text * (2**22 // len(text)))
    assert time.process_time() - start < 3  # 0.5 s; it was 9 s


def test_a_restored_notebook_can_be_shown(course):
    """formgrader shows it by nbconvert, which ends where a picture that was pasted into Markdown is not there."""
    made = notebook(STUDENTS["ada"])
    made["cells"].append(
        {"cell_type": "markdown", "source": "![mine](attachment:x.png)", "metadata": {},
         "attachments": {"x.png": {"image/png": "iVBORw0KGgo="}}}
    )  # fmt: skip
    submit(course.folder, "ada", made)
    course.run("grade")
    path = course.folder / "autograded/ada/patchify/patchify.ipynb"
    page, _ = HTMLExporter().from_notebook_node(nbformat.read(path, as_version=4))
    assert "mine" in page and "<img" not in page


@pytest.mark.parametrize(
    ("value", "cell"),
    [("ada+x@example.org", "ada+x@example.org"), ("-12", "-12"), ("=1+1", "=1+1"), ("=A1()", "'=A1()"), (3.5, 3.5),
     ("+cmd|x", "'+cmd|x"), ("\t=A()", "' =A()"), ("x;=A()", "'x;=A()"),
     ('x;"=A()', "'x;\"=A()"), ('" =A()', "'\" =A()"), ('say "x"; so', 'say "x"; so'),
     ("ada  b ", "ada  b "), (" ada", " ada"), ("\uff1dA()", "'\uff1dA()"), (None, ""), ("a\nb", "a b"), ("", "")],
)  # fmt: skip
def test_cells_that_are_no_formula(value, cell):
    assert clean.cell(value) == cell


WRONGLY = ["inspect a.ipynb", "list --student x", "grade --", ""]


@pytest.mark.parametrize("start", WRONGLY)
def test_what_is_typed_wrongly_is_quoted_clean(course, start):
    """As where a shell put the names of files for `*`."""
    *words, last = start.split(" ")
    words, last = ([*words, last], "") if start and last != "--" else (words, last)
    told = course.run(*words, f"{last}{HOSTILE}{FORGED}", status=2).stderr
    assert not hidden(told) and "\npatchify: passed" not in told
