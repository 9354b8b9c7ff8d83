"""What must break the build does, and what an author may write does not."""

import os
import shutil
import zipfile
from pathlib import Path

import pytest
from addresses import outside_addresses
from bs4 import BeautifulSoup
from small_book import build

from autograder.judging.exercise import exercises
from autograder.notebooks.solution import exercise_texts

ROOT = Path(__file__).parents[2]
GOOD = r"""
(good)=
# A page

Inline $\mathbf{x} \in \R^{P \times P \times C}$, and {eq}`eq-hard`.

$$
\operatorname{rot}(\theta) = \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix},
\quad f(x) = \begin{cases} 1 & x > 0 \\ 0 & \text{else} \end{cases}
$$ (eq-hard)

$$
\begin{aligned}
\boldsymbol{\omega}_k &= \underbrace{a + b}_{\text{the sum}} \\
&= \softmax\left(\frac{QK\T}{\sqrt{d}}\right)
\end{aligned}
$$

```{task} patchify
```

```{quiz} q-number
kind: numeric
question: How many are $2 + 2$?
answer: 4
hint: Count.
solution: Four.
```

```{quiz} q-choice
kind: single
question: Which?
choices:
  - text: This, $x$
    right: true
    why: Indeed.
  - text: That
solution: This.
```

```{widget} patch-average
:label: A picture
Nothing moves without scripts.
```

```{prf:theorem} Of something
:label: thm-something
$1 = 1$.
```

```{code-cell}
---
mystnb:
  figure:
    name: fig-line
    caption: A line, $y = x$.
---
from figures import COLORS, new_figure, show

fig, ax = new_figure(height=2)
ax.plot([0, 1], [0, 1], color=COLORS[0])
show(fig, alt="A line that rises.")
```

{numref}`fig-line` and {prf:ref}`thm-something` and {ref}`exercise-patchify`.
"""
FAULTS = {
    "label": ("# A page\n\n{ref}`nowhere`\n", "undefined label: 'nowhere'"),
    "formula": ("# A page\n\n$\\nosuchcommand$\n", "nosuchcommand"),
    "cell": ("# A page\n\n```{code-cell}\n1 / 0\n```\n", "Executing notebook failed"),
    "stderr": (
        "# A page\n\n```{code-cell}\nimport sys; print('hm', file=sys.stderr)\n```\n",
        "stderr was found in the cell outputs",
    ),
    "alt": (
        "# A page\n\n```{code-cell}\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);\n```\n",
        "picture without alternative text",
    ),
    "figure": (
        "# A page\n\n```{code-cell}\nfrom figures import new_figure, show\nshow(new_figure()[0], alt='')\n```\n",
        "Executing notebook failed",
    ),
    "task": ("# A page\n\n```{task} no_such_exercise\n```\n", "there is no exercise 'no_such_exercise'"),
    "words": ("# A page\n\n```{quiz} q\nWhat?\n```\n", "the body of a quiz is YAML with keys"),
    "choices": (
        "# A page\n\n```{quiz} q\nkind: single\nquestion: Q\nsolution: S\nchoices:\n"
        + "- {text: one}\n" * 11
        + "```\n",
        "at most 10 choices",
    ),
    "quiz": ("# A page\n\n```{quiz} q\nkind: numeric\nquestion: What?\nsolution: This.\n```\n", "missing ['answer']"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    outside = '# A page\n\n<img src="https://example.org/a.png" alt="a">\n'
    done = build(folder, {"good": GOOD, "outside": outside})
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "_build/html"


@pytest.fixture(scope="module")
def faulty(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faulty")
    return build(folder, {name: text for name, (text, _) in FAULTS.items()})


def test_what_authors_write_builds(good):
    soup = BeautifulSoup((good / "good.html").read_text(), "html.parser")
    assert len(soup.select(".formula math[display=block]")) == 2 and len(soup.select("p math")) >= 3
    assert soup.select_one(".formula .eqno").text.startswith("(1)")
    assert soup.select_one("[data-exercise=patchify] .exercise-stub").text.count("raise NotImplementedError") == 1
    assert soup.select_one("[data-exercise=patchify] .solution")
    assert soup.select_one("figure svg[role=img]")["aria-label"] == "A line that rises."
    assert "var(--figure-1," in str(soup.select_one("figure svg"))
    assert "nothing moves" in soup.find("patch-average").text.lower()
    assert [script["src"] for script in soup.select("script[type=module]")] == [
        "_static/course.js",
        "widgets/solve.js",
        "widgets/quiz.js",
        "widgets/patch-average.js",
    ]


def test_the_same_source_gives_the_same_figure(good, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "book")
    from figures import COLORS, new_figure, svg

    fig, ax = new_figure(height=2)
    ax.plot([0, 1], [0, 1], color=COLORS[0])
    again = BeautifulSoup(svg(fig, "A line that rises."), "html.parser").svg
    assert str(BeautifulSoup((good / "good.html").read_text(), "html.parser").select_one("figure svg")) == str(again)


def test_a_page_whose_text_alone_has_changed_keeps_what_its_cells_gave(tmp_path):
    cell = "\n```{code-cell}\nwith open('ran', 'a') as file:\n    print('again', file=file)\nprint('this is 7')\n```\n"
    pages = {"one": "# One\n\nWords.\n" + cell, "two": "# Two\n" + cell.replace("7", "2")}
    done, shown = [], []

    def built(**whole):
        result = build(tmp_path, pages, **whole)
        assert result.returncode == 0, result.stdout + result.stderr
        done.append((tmp_path / "ran").read_text().count("again"))
        shown.append((tmp_path / "_build/html/one.html").read_text())

    built()
    pages["one"] = pages["one"].replace("Words", "Other words")
    built(whole=False)
    assert "Other words" in shown[-1] and "this is 7" in shown[-1]
    pages["one"] = pages["one"].replace("this is 7", "this is 8")
    built(whole=False)
    assert "this is 8" in shown[-1] and "this is 7" not in shown[-1]
    built(whole=False)
    built()
    assert done == [2, 2, 3, 3, 5]


def test_a_changed_style_sheet_reaches_every_page(tmp_path):
    """The pages carry it. Its time is what counts, so its text may stay."""
    written = []
    for touched in (False, False, True):
        if touched:
            os.utime(ROOT / "book/_theme/course/static/course.css")
        result = build(tmp_path, {"one": "# One\n"}, whole=False)
        assert result.returncode == 0, result.stdout + result.stderr
        written.append((tmp_path / "_build/html/one.html").stat().st_mtime_ns)
    assert written[0] == written[1] < written[2]


def test_a_page_of_exercises_is_built_without_torch(tmp_path):
    """It takes seconds to load, more than all else that a touched page costs."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "torch.py").write_text("raise ImportError('torch is loaded')")
    text = "# A page\n\n```{task} split_heads\n```\n"
    book = tmp_path / "book"
    book.mkdir()
    done = build(book, {"page": text}, PYTHONPATH=str(elsewhere))
    assert done.returncode == 0, done.stderr
    page = BeautifulSoup((book / "_build/html/page.html").read_text(), "html.parser")
    assert "def split_heads(x, n_heads):" in page.text


def test_solutions_can_be_hidden(good, tmp_path):
    """From a site that showed them, too."""
    shutil.copytree(good.parent, tmp_path / "_build")
    done = build(tmp_path, {"good": "# A page\n\n```{task} patchify\n```\n"}, SOLUTIONS="hidden")
    assert done.returncode == 0, done.stdout + done.stderr
    site = tmp_path / "_build/html"
    (site / "outside.html").unlink()
    page = BeautifulSoup((site / "good.html").read_text(), "html.parser")
    assert "raise NotImplementedError" in page.text
    assert not page.select(".solution")
    for exercise in exercises("patchify"):
        body = exercise_texts("patchify")[exercise.name].solution.splitlines()[-1].strip()
        assert body.encode() in b"".join(contents(path) for path in good.rglob("*") if path.is_file())
        for path in site.rglob("*"):
            assert path.is_dir() or body.encode() not in contents(path), path


def contents(path):
    """What a file of the site holds; of an archive, what is in it."""
    if not zipfile.is_zipfile(path):
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def test_a_fault_fails_the_build(faulty):
    assert faulty.returncode != 0


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named_with_its_page(faulty, name):
    lines = [line for line in (faulty.stdout + faulty.stderr).splitlines() if f"/{name}.md" in line]
    assert any(FAULTS[name][1] in line for line in lines if "WARNING" in line or "ERROR" in line), lines


def test_an_outside_address_on_a_page_is_caught(good):
    assert outside_addresses(good) == [("outside.html", "https://example.org/a.png")]
