"""The first cell of the notebooks, run where they are opened: on Colab, in a folder of downloads, beside the course.

A place like Colab: another Python where there is one with NumPy, packages installed beforehand, a module
`google.colab`, no folder of the course. GitHub is a server of this machine that gives the course as an archive.
"""

import http.server
import json
import os
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from autograder.judging.exercise import exercises, names
from autograder.notebooks.solution import exercise_texts

ROOT = Path(__file__).parents[1]
CHAPTERS = list(dict.fromkeys(names().values()))
NOTEBOOKS = sorted((ROOT / "exercises").glob("*/*.ipynb"))
ARCHIVE = "/patches-and-positions/course/archive/refs/tags/v0.1.0.zip"

# Runs cells as a kernel does, and tells what became of them. Packages come from folders that are no course's.
PLACE = """
import importlib.metadata, json, sys, time, types
task = json.load(sys.stdin)
sys.path += task["packages"]
if task["colab"]:
    sys.modules["google"], sys.modules["google.colab"] = types.ModuleType("google"), types.ModuleType("google.colab")
if task["python"]:
    sys.version_info = tuple(task["python"])
installed = lambda: sorted(f"{one.name} {one.version}" for one in importlib.metadata.distributions())
told, before = {"python": sys.version.split()[0], "problems": [], "seconds": []}, installed()
for cells in task["notebooks"]:
    space = {}
    for number, source in enumerate(cells):
        began = time.process_time()
        try:
            exec(source, space)
        except (SystemExit, AssertionError) as error:
            told["problems"].append(f"{type(error).__name__}: {error}")
        if number == 0:
            told["seconds"].append(time.process_time() - began)
told["unchanged"] = installed() == before and len(before) > 1
told["from"] = getattr(sys.modules.get("autograder"), "__file__", None)
print(json.dumps(told))
"""


def code_cells(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return {cell["id"]: "".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """The course as GitHub packs it: everything in one folder, named after the repository and the tag."""
    path = tmp_path_factory.mktemp("github") / "v0.1.0.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for folder in ("autograder", "benchmarks", "book", "exercises", "solutions"):
            for file in sorted((ROOT / folder).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    packed.write(file, f"course-0.1.0/{file.relative_to(ROOT)}")
    return path.read_bytes()


@pytest.fixture
def github(archive):
    """A server in place of GitHub; `answers` may be changed, `asked` is what came in."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            server.asked.append(self.path)
            content = server.answers.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.answers, server.asked = {ARCHIVE: archive}, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run(folder, notebooks, github, *, colab=True, python=None, version=None, packages=True):
    """Run the cells of notebooks in a place of their own; returns what became of them."""
    program = python or sys.executable
    # -S: no site-packages, hence not the course that is installed there; -I: nothing from the surroundings
    ask = [program, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"]
    places = [subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()] if packages else []
    address = f"http://127.0.0.1:{github.server_port}"
    notebooks = [[cell.replace("https://github.com", address) for cell in cells] for cells in notebooks]
    task = {"packages": places, "colab": colab, "python": version, "notebooks": notebooks}
    done = subprocess.run(
        [program, "-I", "-S", "-c", PLACE], cwd=folder, input=json.dumps(task), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]) | {"printed": done.stdout, "stderr": done.stderr}


def pythons():
    """Interpreters of other versions that can run the course."""
    names = [f"python3.{minor}" for minor in (11, 12, 13)]
    places = [*os.environ["PATH"].split(os.pathsep), *Path.home().glob(".pyenv/versions/*/bin")]
    found = {}
    for name in names:
        for program in (Path(place, name) for place in places):
            test = [program, "-c", "import numpy, scipy; assert numpy.__version__ >= '2'"]
            ours = name == "python{}.{}".format(*sys.version_info)
            if not ours and program.is_file() and subprocess.run(test, capture_output=True).returncode == 0:
                found.setdefault(name, str(program))
    return found


def start(chapter):
    """The cells of a chapter up to its first exercise, that with its stub, its solution, and the checks of both."""
    cells, first = code_cells(ROOT / "exercises" / chapter / f"{chapter}.ipynb"), exercises(chapter)[0].name
    before = list(cells)[: list(cells).index(first)]
    solution = exercise_texts(chapter)[first].solution
    return [cells[name] for name in [*before, first, f"check_{first}"]] + [solution, cells[f"check_{first}"]]


def is_right(told, chapters):
    """Every stub was refused as such, every solution passed, and nothing installed was touched."""
    firsts = [exercises(chapter)[0].name for chapter in chapters]
    assert [problem.partition(":")[0] for problem in told["problems"]] == ["CheckFailed"] * len(firsts)
    for name, problem in zip(firsts, told["problems"], strict=True):
        assert name in problem and "not written yet" in problem
        assert f"\n{name}: " in f"\n{told['printed']}"
    assert told["unchanged"]
    assert told["stderr"] == ""


def test_the_same_first_cell_in_every_notebook():
    cells = {next(iter(code_cells(path).values())) for path in NOTEBOOKS}
    assert len(cells) == 1
    assert f'"https://github.com{ARCHIVE}"' in cells.pop()


def test_on_colab_every_chapter_starts(tmp_path, github):
    (tmp_path / "sample_data").mkdir()  # as it lies there
    told = run(tmp_path, [start(chapter) for chapter in CHAPTERS], github)
    assert max(told["seconds"]) < 5, "the first cell takes a second or less"
    is_right(told, CHAPTERS)
    assert github.asked == [ARCHIVE]  # once, for seven notebooks
    assert told["from"] == str(tmp_path / "course-0.1.0" / "autograder" / "__init__.py")

    told = run(tmp_path, [start("tokens")], github)  # the kernel is restarted, the network gone
    is_right(told, ["tokens"])
    assert github.asked == [ARCHIVE]


def test_on_colab_the_notebook_of_a_page_finds_results_and_figures(tmp_path, github):
    cells = code_cells(ROOT / "exercises" / "gpu" / "flexible_patches.ipynb")
    draw = (
        "from figures import COLORS, new_figure, show, svg\nfig, ax = new_figure()\nax.plot([0, 1], color=COLORS[0])\n"
    )
    draw += (
        "drawn = svg(fig, 'a line')\nassert 'var(--figure-1,#' in drawn and 'var(--ink,currentColor)' in drawn, drawn"
    )
    results = "assert Path('results/flexible_patches.json').is_file(), os.getcwd()"
    told = run(tmp_path, [[cells["setup"], cells["place"], draw, results, cells["place"]]], github)
    assert told["problems"] == [] and told["unchanged"] and told["stderr"] == ""


@pytest.mark.parametrize("name", ["python3.11", "python3.12", "python3.13"])
def test_on_colab_with_another_python(tmp_path, github, name):
    if name not in pythons():
        pytest.skip(f"there is no {name} with NumPy and SciPy here, or it is the one that runs the tests")
    chapters = [chapter for chapter in CHAPTERS if chapter != "small_vit"]  # PyTorch is seldom there too
    told = run(tmp_path, [start(chapter) for chapter in chapters], github, python=pythons()[name])
    assert told["python"].startswith(name.removeprefix("python"))
    is_right(told, chapters)


@pytest.mark.parametrize("place", ["course", "course/work", "downloads"])
def test_the_course_is_found_beside_and_above_the_notebook(tmp_path, github, archive, place):
    (tmp_path / "downloads").mkdir()
    with zipfile.ZipFile(github_file(tmp_path, archive)) as packed:
        packed.extractall(tmp_path / "downloads")
    (tmp_path / "downloads" / "course-0.1.0").rename(tmp_path / "course")
    if place == "downloads":
        (tmp_path / "course").rename(tmp_path / "downloads" / "anything")
    (tmp_path / place).mkdir(exist_ok=True)
    is_right(run(tmp_path / place, [start("tokens")], github, colab=False), ["tokens"])
    assert github.asked == []


def github_file(tmp_path, archive):
    path = tmp_path / "archive.zip"
    path.write_bytes(archive)
    return path


def first_cell():
    return code_cells(NOTEBOOKS[0])["setup"]


def test_what_is_installed_is_taken(tmp_path, github):
    """As in this course's own environment, and in the sandbox that grades."""
    done = subprocess.run([sys.executable, "-c", first_cell() + "\nprint(check)"], cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(tmp_path.iterdir()) == []


def problem(told):
    assert len(told["problems"]) == 1 and told["from"] is None
    kind, _, message = told["problems"][0].partition(": ")
    assert kind == "SystemExit"
    assert len(message) < 400 and "Traceback" not in message
    return message


def test_away_from_colab_nothing_is_fetched_unless_asked(tmp_path, github):
    message = problem(run(tmp_path, [[first_cell()]], github, colab=False))
    assert "not here" in message and "make lab" in message and "FETCH = True" in message
    assert github.asked == [] and list(tmp_path.iterdir()) == []
    cells = start("tokens")
    asked = cells[0].replace('FETCH = "google.colab" in sys.modules', "FETCH = True")
    assert asked != cells[0]
    is_right(run(tmp_path, [[asked, *cells[1:]]], github, colab=False), ["tokens"])


def test_what_another_account_put_above_is_not_taken(tmp_path, github):
    """In /tmp everybody may make a folder named autograder; a learner's own may lie below."""
    mine = tmp_path / "shared" / "mine"
    mine.mkdir(parents=True)
    planted = tmp_path / "shared" / "autograder"
    planted.mkdir()
    (planted / "judge.py").touch()
    (planted / "__init__.py").write_text("raise ValueError('the planted one ran')")
    (tmp_path / "shared").chmod(0o1777)
    assert "not here" in problem(run(mine, [[first_cell()]], github, colab=False))


@pytest.mark.parametrize("trouble", ["no network", "no such version", "a page to log in", "another archive", "cut off"])
def test_what_cannot_be_fetched_is_said(tmp_path, github, archive, trouble):
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as packed:
        packed.writestr("else/readme", "")
    answers = {"a page to log in": b"<html>", "another archive": other.read_bytes(), "cut off": archive[:20000]}
    github.answers = {ARCHIVE: answers[trouble]} if trouble in answers else {}
    other.unlink()
    cell = first_cell()
    if trouble == "no network":
        cell = cell.replace("https://github.com", "http://127.0.0.1:9")
    message = problem(run(tmp_path, [[cell]], github))
    assert "v0.1.0.zip" in message
    if trouble == "another archive":
        assert "does not hold the course" in message
    else:
        assert "could not be fetched" in message and "unpack it" in message
    if trouble == "no such version":
        assert "404" in message


def test_an_old_python_is_said(tmp_path, github):
    message = problem(run(tmp_path, [[first_cell()]], github, version=(3, 10, 12)))
    assert "3.11" in message and "3.10" in message and "kernel" in message
    assert github.asked == []


def test_the_first_cell_can_be_read_by_any_python_3():
    """Else an old Python would name a syntax error and not its age."""
    import ast

    ast.parse(first_cell(), feature_version=(3, 7))


def test_missing_numpy_is_said(tmp_path, github):
    message = problem(run(tmp_path, [[first_cell()]], github, packages=False))
    assert "numpy and scipy" in message and "%pip install numpy scipy" in message
    assert github.asked == []


def test_repository_and_version_are_those_of_the_settings(monkeypatch, tmp_path):
    from autograder.notebooks import generate

    (tmp_path / "_config.yml").write_text("title: A school\nsphinx: {config: {repository: a-school/fork}}")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "7.8.9"')
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    assert '"https://github.com/a-school/fork/archive/refs/tags/v7.8.9.zip"' in generate.first_cell().source
