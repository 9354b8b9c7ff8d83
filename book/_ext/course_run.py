"""What the pages need to run Python: the course's own code as a zip, and where Pyodide lies."""

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from autograder.judging.exercise import CHAPTERS, heavy

ROOT = Path(__file__).parents[2]
# Of autograder
MODULES = ("__init__", "course", "sandbox/__init__", "sandbox/inside/__init__", "sandbox/inside/calls",
           "judging/__init__", "judging/browser", "judging/compare", "judging/exercise", "judging/judge")  # fmt: skip
PACKAGES = ("numpy", "scipy")  # SciPy is loaded only where a reader's code imports it: it costs seconds and 20 MB
NPM_PACKAGE = "pyodide@0.27.7"  # the release of site.yml's pyodide_address
NPM_SHA512 = "RUSVJlhQdfWfgO9hVHCiXoG+nVZQRS5D9FzgpLJ/VcgGBLSAKoPL8kTiOikxbHQm1kRISeWUBdulEgO26qpSRA=="
RUNTIME = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")


def chapters():
    """The chapters that a browser can run."""
    return [chapter for chapter in CHAPTERS if not heavy(chapter)]


def course():
    """The course as a browser needs it: the checks, and the solutions they compare with.

    Returns
    -------
    bytes
        A zip, always the same one.
    """
    paths = [f"autograder/{module}.py" for module in MODULES]
    paths += ["autograder/cases/__init__.py", "autograder/cases/course.toml", "solutions/__init__.py"]
    paths += [f"{folder}/{chapter}.py" for chapter in chapters() for folder in ("autograder/cases", "solutions")]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(paths):
            entry = zipfile.ZipInfo(path, (2020, 1, 1, 0, 0, 0))
            archive.writestr(entry, (ROOT / path).read_bytes(), zipfile.ZIP_DEFLATED)
    return content.getvalue()


class NotBrought(ValueError):
    """npm is not here, or brings nothing: a matter of this machine and its network, not of the folder."""


def runtime_from_npm(folder):
    """Put the files of Pyodide itself, without any packages, into a folder, as npm has them.

    Raises
    ------
    NotBrought
        If npm is not here or does not bring the package.
    ValueError
        If it brings another one than the one known here.
    """
    if not shutil.which("npm"):
        raise NotBrought(f"npm, which brings {NPM_PACKAGE}, is not here")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        done = subprocess.run(["npm", "pack", "--silent", NPM_PACKAGE], cwd=scratch, capture_output=True, text=True)
        if done.returncode:
            raise NotBrought(f"npm did not bring {NPM_PACKAGE}: {done.stderr.strip()[-300:]}")
        [packed] = Path(scratch).iterdir()
        if base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode() != NPM_SHA512:
            raise ValueError(f"npm brought another {NPM_PACKAGE} than the one whose sum is known here")
        whole = Path(scratch, "whole")
        whole.mkdir()
        with tarfile.open(packed) as archive:
            for name in RUNTIME:
                (whole / name).write_bytes(archive.extractfile(f"package/{name}").read())
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)  # never half of it, though this be stopped


def runtime_files(folder, cache=ROOT / "_build" / NPM_PACKAGE):
    """The files of Pyodide that the site needs: of a folder with a release, or with its packages alone.

    Where the folder has none of Pyodide's own files, they come from npm, into `cache`, once.

    Raises
    ------
    ValueError
        If a file is missing, or a package is not the one that `pyodide-lock.json` names.
    """
    folder = own = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"PYODIDE={folder} is no folder")
    if not any((folder / name).exists() for name in RUNTIME):
        own = cache
        if not all((own / name).exists() for name in RUNTIME):
            try:
                runtime_from_npm(own)
            except ValueError as error:
                raise type(error)(f"PYODIDE={folder}: no {', '.join(RUNTIME)} there, and {error}") from error
    files = [own / name for name in RUNTIME]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise ValueError(f"PYODIDE={folder}: no {', '.join(missing)} there")
    packages = json.loads((own / "pyodide-lock.json").read_text())["packages"]
    wanted = set(PACKAGES)
    while wanted:
        package = packages[wanted.pop()]
        file = folder / package["file_name"]
        if file in files:
            continue
        if not file.is_file():
            missing.append(file.name)
        elif hashlib.sha256(file.read_bytes()).hexdigest() != package["sha256"]:
            raise ValueError(f"PYODIDE={folder}: {file.name} is not the file that pyodide-lock.json names")
        files.append(file)
        wanted.update(package["depends"])
    if missing:
        raise ValueError(
            f"PYODIDE={folder}: no {', '.join(sorted(missing))} there; Pyodide's own distribution has them"
        )
    return files


def write_run(html, address, folder=""):
    """Write `run/` into a built site: the course, the settings and, when a folder of it is given, Pyodide."""
    target = Path(html) / "run"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    content = course()
    (target / "course.zip").write_bytes(content)
    if folder:
        (target / "pyodide").mkdir()
        for file in runtime_files(folder):
            shutil.copyfile(file, target / "pyodide" / file.name)
    settings = {
        "pyodide": "pyodide/" if folder else address,
        # The digest, so that no browser keeps an old one
        "course": f"course.zip?{hashlib.sha256(content).hexdigest()[:12]}",
    }
    (target / "settings.json").write_text(json.dumps(settings, indent=1))


def write_settings(app, exception):
    if exception or app.builder.format != "html":
        return
    if app.config.solutions_hidden:
        # The check compares with the solutions, so they go to whoever runs it. An earlier build may have left them.
        shutil.rmtree(Path(app.outdir) / "run", ignore_errors=True)
    else:
        write_run(app.outdir, app.config.pyodide_address, os.environ.get("PYODIDE", ""))


def setup(app):
    app.add_config_value("pyodide_address", "", "html", str)
    app.connect("build-finished", write_settings)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
