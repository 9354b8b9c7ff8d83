"""What the pages run Python with: the course, the runtime's sums, and the code of an editor."""

import base64
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import course_run
import numpy as np
import pytest
import yaml
from course_run import RUNTIME, chapters, course, runtime_files, write_run

from autograder.judging.browser import solve
from autograder.notebooks.solution import exercise_texts

ROOT = Path(__file__).parents[2]
FILES = {"numpy": "numpy.whl", "scipy": "scipy.whl", "openblas": "openblas.zip"}


@pytest.fixture
def pyodide(tmp_path):
    """A folder with the names of a Pyodide release."""
    packages = {
        name: {"file_name": file, "depends": [], "sha256": hashlib.sha256(file.encode()).hexdigest()}
        for name, file in FILES.items()
    }
    packages["scipy"]["depends"] = ["numpy", "openblas"]
    folder = tmp_path / "pyodide"
    folder.mkdir()
    for name in (*RUNTIME, *FILES.values(), "console.html"):
        (folder / name).write_text(name)
    (folder / "pyodide-lock.json").write_text(json.dumps({"packages": packages}))
    return folder


def test_the_site_takes_what_it_needs_of_the_runtime(pyodide, tmp_path):
    write_run(tmp_path / "html", "https://example.org/", pyodide)
    names = {path.name for path in (tmp_path / "html/run/pyodide").iterdir()}
    assert names == {*RUNTIME, *FILES.values()}
    settings = json.loads((tmp_path / "html/run/settings.json").read_text())
    assert settings["pyodide"] == "pyodide/" and "example.org" not in str(settings)


@pytest.fixture
def fake_npm(pyodide, tmp_path, monkeypatch):
    """A stand-in for npm, which packs what the folder above holds; the real one serves the tests of the pages."""
    with tarfile.open(tmp_path / "pyodide.tgz", "w:gz") as archive:
        for name in (*RUNTIME, "console.html"):
            archive.add(pyodide / name, f"package/{name}")
            (pyodide / name).unlink()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "npm").write_text(f'#!/bin/sh\ncp {tmp_path}/pyodide.tgz .; echo "$*" >> {tmp_path}/calls\n')
    (tmp_path / "npm").chmod(0o755)
    sum = base64.b64encode(hashlib.sha512((tmp_path / "pyodide.tgz").read_bytes()).digest()).decode()
    monkeypatch.setattr(course_run, "NPM_SHA512", sum)
    return tmp_path


def test_a_folder_of_packages_is_filled_from_npm_once(pyodide, fake_npm, tmp_path):
    for _ in range(2):
        files = runtime_files(pyodide, cache=tmp_path / "cache")
        assert {file.name for file in files} == {*RUNTIME, *FILES.values()}
        assert (tmp_path / "cache/pyodide.mjs").read_text() == "pyodide.mjs"
    assert (tmp_path / "calls").read_text().split() == ["pack", "--silent", course_run.NPM_PACKAGE]


def test_another_package_of_npm_is_refused(pyodide, fake_npm, tmp_path, monkeypatch):
    monkeypatch.setattr(course_run, "NPM_SHA512", "another")
    with pytest.raises(ValueError, match=r"no pyodide\.mjs, .* there, and npm brought another pyodide@"):
        runtime_files(pyodide, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(("script", "said"), [(None, "is not here"), ("echo no network >&2; exit 1", "no network")])
def test_without_npm_the_files_are_named(pyodide, fake_npm, tmp_path, monkeypatch, script, said):
    if script:
        (tmp_path / "npm").write_text(f"#!/bin/sh\n{script}\n")
    else:
        monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match=rf"no pyodide\.mjs, .*, pyodide-lock\.json there, and npm.*{said}"):
        runtime_files(pyodide, cache=tmp_path / "cache")


def test_npm_brings_the_release_that_the_pages_load_from_outside():
    settings = yaml.safe_load((ROOT / "book/_ext/site.yml").read_text())["sphinx"]["config"]
    assert f"/v{course_run.NPM_PACKAGE.partition('@')[2]}/" in settings["pyodide_address"]


def test_a_wrong_folder_is_named_before_anything_is_built():
    done = subprocess.run(
        [sys.executable, "book/build.py", "build", "."],
        cwd=ROOT,
        env=os.environ | {"PYODIDE": "nowhere"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "PYODIDE=nowhere is no folder\n")


@pytest.mark.parametrize("name", ["pyodide.asm.wasm", "openblas.zip"])
def test_a_missing_file_is_named(pyodide, name):
    (pyodide / name).unlink()
    with pytest.raises(ValueError, match=f"no {name} there"):
        runtime_files(pyodide)


def test_a_package_with_another_sum_is_refused(pyodide):
    (pyodide / "openblas.zip").write_text("something else")
    with pytest.raises(ValueError, match=r"openblas\.zip is not the file that pyodide-lock\.json names"):
        runtime_files(pyodide)


def test_a_browsers_course_is_small_and_enough_for_the_checks(tmp_path):
    """It is the code of the checks and nothing else: a page loads all of it before Python can start."""
    content = course()
    assert content == course()
    assert len(content) < 120_000
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert {Path(name).suffix for name in archive.namelist()} == {".py", ".toml"}
        archive.extractall(tmp_path / "course")
    code = exercise_texts("pooling")["mean_then_norm"].solution
    script = "import sys; sys.path.insert(0, 'course')\nimport autograder; print(autograder.__file__)\n"
    script += "from autograder.judging.browser import solve\n"
    script += f"print(solve('mean_then_norm', {code!r}, ['import numpy as np'], [], True))"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith(str(tmp_path)) and '"passed"' in done.stdout
    assert {"patchify", "pooling"} <= set(chapters()) and "small_vit" not in chapters()


@pytest.mark.parametrize(
    ("code", "kind", "line", "message"),
    [
        ("def patchify(img, P):\n    raise NotImplementedError", "failed", None, "not written yet"),
        ("x = 1", "failed", None, "There is no function patchify"),
        ("import numpy\nx = (", "error", 2, "SyntaxError"),
        ("import sys\n\nsys.exit(3)", "error", 3, "SystemExit: 3"),
        ("def f():\n    return 1 / 0\nf()", "error", 2, "ZeroDivisionError"),
    ],
)
def test_what_a_reader_is_told(code, kind, line, message):
    answer = json.loads(solve("patchify", code, ["import numpy as np"], [], True))
    assert (answer["kind"], answer["line"]) == (kind, line)
    assert message in answer["message"] and "autograder" not in answer["message"]


def test_the_check_of_the_notebook_is_there_too(capsys):
    solve("patchify", f"{exercise_texts('patchify')['patchify'].solution}\ncheck(patchify)", ["import numpy as np"])
    assert "checks pass" in capsys.readouterr().out


def test_other_exercises_are_defined_but_not_run(capsys):
    before = ["print('no')\nimport math\ndef g(x):\n    return math.floor(x)", "def broken(:"]
    solve("patchify", "g(2.5)", [], before)
    assert capsys.readouterr().out == "2\n"


@pytest.mark.parametrize(
    "harm",
    [
        "np.asarray = np.array = None",
        "np.seterr(all='raise')",
        "import builtins\nbuiltins.len = None",
        "import builtins\ndel builtins.sorted",
    ],
)
def test_what_is_done_to_numpy_and_builtins_ends_with_the_run(harm):
    solve("patchify", harm, ["import numpy as np"])
    solution = exercise_texts("patchify")["patchify"].solution
    said = json.loads(solve("patchify", solution, ["import numpy as np"], [], True))
    assert said == {"kind": "passed", "message": "patchify: 5 of 5 checks pass", "line": None}
    assert np.geterr()["divide"] != "raise" and len(sorted([2, 1])) == 2


def test_the_verdict_is_no_part_of_what_is_printed(capsys):
    code = exercise_texts("patchify")["patchify"].solution + "\nprint('x', end='')"
    said = json.loads(solve("patchify", code, ["import numpy as np"], [], True))
    assert said["message"] == "patchify: 5 of 5 checks pass" and capsys.readouterr().out == "x"


@pytest.mark.parametrize(
    ("code", "last"),
    [
        ("n = input('n?')", "RuntimeError: input() does not work on the page: write the value into your code"),
        ("%matplotlib inline\nx = 1", "Lines that begin with % or ! are for notebooks: take them out here."),
        ("def patchify(img, P):\n    raise KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_what_a_page_cannot_do_is_said(code, last):
    said = json.loads(solve("patchify", code, ["import numpy as np"], ["def f(x=exit()):\n    pass"], True))
    assert (said["kind"], said["message"].splitlines()[-1]) == ("error", last)


def test_a_function_that_needs_an_unwritten_one_is_told_which():
    stub = exercise_texts("pooling")["mean_then_norm"].stub
    code = "def norm_then_mean(*inputs, **more):\n    return mean_then_norm(*inputs, **more)"
    said = json.loads(solve("norm_then_mean", code, ["import numpy as np"], [stub], True))
    assert said["kind"] == "failed" and "calls mean_then_norm, which is not written yet" in said["message"]
