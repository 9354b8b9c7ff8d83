"""The exercise notebooks: what they hold, and that they are up to date."""

import json

import nbformat
import pytest

from autograder.judging.exercise import exercises, names
from autograder.notebooks.generate import ROOT, first_cell, generate, generate_from_page, gpu_pages
from autograder.notebooks.solution import BEGIN, STUB, exercise_texts, notebook

WRITTEN = list(dict.fromkeys(names().values()))


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    import autograder.grading.gradebook  # noqa: F401 - nbgrader asks for its gradebook's version once, and not for each notebook

    root = tmp_path_factory.mktemp("course")
    for chapter in WRITTEN:
        generate(chapter, root)
    for page in gpu_pages():
        generate_from_page(page, root)
    return root


def committed(chapter):
    return ROOT / "exercises" / chapter / f"{chapter}.ipynb"


def stale(chapter, fresh_root, root=ROOT, folder=None):
    """Whether the learner's notebook under `root` is not what the generator writes."""
    path = f"exercises/{folder or chapter}/{chapter}.ipynb"
    return (root / path).read_bytes() != (fresh_root / path).read_bytes()


@pytest.mark.parametrize("chapter", WRITTEN)
def test_committed_notebook_is_what_the_generator_writes(chapter, generated):
    assert not stale(chapter, generated), "out of date: run `make exercises` and commit"


@pytest.mark.parametrize("page", gpu_pages())
def test_committed_notebook_of_a_page_is_what_the_generator_writes(page, generated):
    assert not stale(page, generated, folder="gpu"), "out of date: run `make exercises` and commit"


def test_a_notebook_out_of_date_is_seen(generated, tmp_path):
    path = tmp_path / "exercises" / "patchify" / "patchify.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(committed("patchify").read_bytes().replace(b"raster order", b"raster  order", 1))
    assert stale("patchify", generated, tmp_path)


def test_there_is_no_notebook_without_a_source():
    sources = {f"{chapter}/{chapter}" for chapter in WRITTEN} | {f"gpu/{page}" for page in gpu_pages()}
    found = (ROOT / "exercises").rglob("*.ipynb")
    assert {str(path.relative_to(ROOT / "exercises").with_suffix("")) for path in found} == sources


def beyond_the_body(chapter, cells):
    """The exercises whose released cell differs from the module in more than the solution's body."""
    released = {cell.id: cell.source for cell in cells}
    different = []
    for cell in notebook(chapter).cells:
        if BEGIN in cell.source:
            head, _, rest = cell.source.partition(f"    {BEGIN}\n")
            body, _, tail = rest.partition("    ### END SOLUTION")
            name = cell.source.partition("def ")[2].partition("(")[0]
            assert body.strip()
            if released[name] != f"{head}    {STUB}{tail}".rstrip():
                different.append(name)
    return different


@pytest.mark.parametrize("chapter", WRITTEN)
def test_stub_differs_from_its_solution_in_the_body_alone(chapter):
    cells = nbformat.read(committed(chapter), 4).cells
    assert beyond_the_body(chapter, cells) == []
    stubs = {name: text.stub for name, text in exercise_texts(chapter).items()}
    assert {cell.id: cell.source for cell in cells if cell.id in stubs} == stubs


@pytest.mark.parametrize("old, new", [("img, P", "img, side"), ("(N_p, P", "(N, P"), ("raise Not", "return Not")])
def test_a_stub_that_differs_elsewhere_is_seen(old, new):
    cells = nbformat.read(committed("patchify"), 4).cells
    for cell in cells:
        if cell.id == "patchify":
            assert old in cell.source
            cell.source = cell.source.replace(old, new)
    assert beyond_the_body("patchify", cells) == ["patchify"]


@pytest.mark.parametrize("chapter", WRITTEN)
def test_notebook_gives_nothing_away_and_grades(chapter):
    text = committed(chapter).read_text(encoding="utf-8")
    released = json.loads(text)
    nbformat.validate(released)
    assert "BEGIN" not in text
    assert "hidden" not in text.replace('"source_hidden": true', "").lower()  # the first cell is folded
    assert '"output_type"' not in text
    points = {
        cell["metadata"]["nbgrader"]["grade_id"]: cell["metadata"]["nbgrader"]["points"]
        for cell in released["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade")
    }
    assert points == {f"check_{exercise.name}": exercise.points for exercise in exercises(chapter)}
    sources = "\n".join("".join(cell["source"]) for cell in released["cells"])
    for exercise in exercises(chapter):
        assert exercise_texts(chapter)[exercise.name].solution.splitlines()[-1].strip() not in sources


PAGE = """\
(the-page)=
# A page

```{notebook} tokens
```

See {ref}`patchify`, {ref}`other words <patchify>`, {cite:t}`vaswani2017` and {cite:p}`beyer2023`; `{ref}` is code.

$$
\\softmax(\\mathbf{A}\\T)
$$ (eq-mine)

By {eq}`eq-mine`, in {numref}`fig-mine`:

```{prf:theorem} Name
:label: thm-mine
Text with {prf:ref}`thm-mine`.
```

```{task} patchify
```

```{quiz} quiz-mine
kind: single
question: Which?
choices:
  - text: This
    right: true
  - text: That
    why: No.
solution: It is.
```

```{code-cell}
---
mystnb:
  figure:
    name: fig-mine
    caption: |
      A line.
---
1 + 1
```
"""


@pytest.fixture
def page(tmp_path, monkeypatch):
    from autograder.notebooks import from_page

    (tmp_path / "book").mkdir()
    for file in ("_config.yml", "book/references.bib", "book/patchify.md"):
        (tmp_path / file).write_bytes((ROOT / file).read_bytes())
    monkeypatch.setattr(from_page, "ROOT", tmp_path)
    from_page.labels.cache_clear()
    yield lambda text: (tmp_path / "book/mine.md").write_text(text) and from_page.page_notebook("mine", first_cell())
    from_page.labels.cache_clear()


def test_a_page_becomes_markdown_that_needs_no_site(page):
    text, _, _, _, code, caption = page(PAGE).cells
    site = "https://patches-and-positions.github.io/course/book"
    for words in (
        f"See [Patchify]({site}/patchify.html), [other words]({site}/patchify.html),",
        "[Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762) and ([Beyer et al., 2023]",
        "`{ref}` is code",
        "\\operatorname{softmax}(\\mathbf{A}^{\\mathsf{T}})\n\\tag{1}\n$$",
        "By (1), in Figure 1:",
        "> **Theorem** (Name). Text with",
        "Write `patchify` in the notebook `exercises/patchify/patchify.ipynb`",
        "- **A.** This\n- **B.** That",
        "<summary>Answer</summary>\n\n**A**\n\nB: No.\n\nIt is.",
    ):
        assert words in text.source, (words, text.source)
    assert code.source == "1 + 1"
    assert caption.source == "*Figure 1.* A line."


@pytest.mark.parametrize("wrong", ["{ref}`nowhere`", "{unheard}`x`", "```{unheard}\n```"])
def test_what_a_notebook_cannot_show_is_named(page, wrong):
    with pytest.raises(ValueError, match=r"nowhere|unheard"):
        page(f"(a)=\n# A\n\n{wrong}\n")
