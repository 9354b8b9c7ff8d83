"""The attacks of tests/security/hostile.py, each against stock nbgrader and against ours, by the real commands.

    python benchmarks/attacks.py [WORD ...]

Each runs in a course and a home folder of its own, which are thrown away, with another student's submission after it.
The table goes to benchmarks/results/attacks.json, which the page for teachers shows; with words, only the attacks
whose name holds one of them are run, and their rows of the table replaced. All take about twenty minutes.
"""

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import date
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "classroom"), str(ROOT / "tests" / "security"), str(ROOT)]

import build  # noqa: E402
import nbformat  # noqa: E402
from build import submit  # noqa: E402
from hostile import ATTACKS, World  # noqa: E402
from nbgrader.apps import AutogradeApp, GenerateAssignmentApp, GenerateFeedbackApp, NbGraderApp  # noqa: E402, F401

import autograder.__main__  # noqa: E402
import autograder.grading.run  # noqa: E402
from autograder.grading.gradebook import api  # noqa: E402
from autograder.notebooks.generate import source_notebook  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "attacks.json"
PATIENCE = 400  # seconds for a run of two submissions, which takes less than ten on a quiet machine
MEMORY = 16 << 30  # bytes that a run may take, for this machine's sake
FULL = 12.0
NBGRADER = (
    # On a busy machine four seconds, the usual, are soon over: no attack shall fell nbgrader by that.
    ("nbgrader", "autograde", "patchify", "--ExecutePreprocessor.iopub_timeout=60"),
    ("nbgrader", "generate_feedback", "patchify"),
)
OURS = (("autograder", "grade"),)


def course(folder):
    """The files of a course whose assignment is recorded: nbgrader refuses to grade without."""
    source = folder / "_build" / "source" / "patchify" / "patchify.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(source_notebook("patchify"), source)
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    run(folder, folder, ("nbgrader", "generate_assignment", "patchify"))
    build.RELEASED = folder / "exercises"
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def run(folder, home, arguments):
    """Run a command in a process of its own; returns whether it has come to an end.

    The process is forked from this one, which has imported what the commands need, and is ended after PATIENCE.
    """
    pid = os.fork()
    if pid == 0:
        try:
            _command(folder, home, arguments)
        except SystemExit as end:
            os._exit(bool(end.code))
        finally:
            os._exit(1)
    end = time.monotonic() + PATIENCE
    while not os.waitpid(pid, os.WNOHANG)[0]:
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return False
        time.sleep(0.1)
    return True


def _command(folder, home, arguments):
    os.setsid()
    log = os.open(home / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (0, 1, 2):  # no pipe: what outlives the run would hold it open
        os.dup2(log if stream else os.open(os.devnull, os.O_RDONLY), stream)
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    os.environ.clear()
    os.environ.update(HOME=str(home), PATH=path, LANG="C.UTF-8", PYTHONPATH=str(ROOT), GRADEBOOK_PASSWORD="x",
                      PYTHONDONTWRITEBYTECODE="1", OPENBLAS_NUM_THREADS="1")  # fmt: skip
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    program, *words = arguments
    if program == "nbgrader":
        NbGraderApp.launch_instance(argv=words)
    else:
        autograder.__main__.main(words)


def end_all(home):
    """End every process whose home folder is the thrown-away one."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"HOME={home}\0".encode() in Path("/proc", entry, "environ").read_bytes():
                os.kill(int(entry), signal.SIGKILL)


def attacked(attack, files, commands):
    """Run the attack under a grader; returns its verdict, "held" or "fell", and how."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, World(scratch, files) as world:
        submit(world.course, "attacker", json.dumps(world.notebook(attack)))  # which may hold what UTF-8 cannot
        ended = [run(world.course, world.home, command) for command in commands]
        gained = [] if all(ended) else ["the run hung"]
        page, returned = "", ""
        for path in sorted(world.course.glob("feedback/attacker/patchify/*.html")):
            page += path.read_text("utf-8", "replace")
        for path in sorted(world.course.glob("autograded/attacker/patchify/patchify.ipynb")):
            cells = json.loads(path.read_text("utf-8"))["cells"]
            returned += json.dumps([cell.get("outputs") for cell in cells], ensure_ascii=False)
        points = scores(world.course)
        gained += compared(attack, points) + world.gains(returned, page)
        end_all(world.home)
    score = points["attacker"][0]
    had = f"{score:.4g} of {FULL:g} points" if score is not None else "no score"
    return {"verdict": "fell" if gained else "held", "how": "; ".join(gained) or had}


def scores(folder):
    """Student -> (the score, or None where there is none; the extra credit) as the gradebook has it."""
    found = {"attacker": (None, 0.0), "next": (None, 0.0)}
    with api.Gradebook(f"sqlite:///{folder}/gradebook.db", "patches-and-positions") as book:
        for student in found:
            with contextlib.suppress(api.MissingEntry):
                grades = book.find_submission("patchify", student).notebooks[0].grades
                given = [grade.auto_score for grade in grades if grade.auto_score is not None]
                found[student] = sum(given) if given else None, sum(grade.extra_credit or 0.0 for grade in grades)
    return found


def compared(attack, points):
    """What the gradebook has that it should not have, in words."""
    found = []
    score, _ = points["attacker"]
    if score is None:
        found.append("no score for its right functions" if attack.least else "no score")
    elif score > attack.most + 1e-6:
        found.append(f"{score:.4g} points, {attack.most:.4g} deserved")
    elif score < attack.least - 1e-6:
        found.append(f"{score:.4g} points, {attack.least:.4g} deserved")
    if any(extra for _, extra in points.values()):
        found.append("extra points in the gradebook")
    if points["next"][0] != FULL:
        found.append(f"the next student had {points['next'][0] or 0:.4g} of {FULL:g} points")
    return found


def machine():
    """What kind of machine this is."""
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    user = "root" if os.geteuid() == 0 else "an ordinary user"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return f"{os.cpu_count()} cores ({platform.machine()}), {memory} GB, {system}, run by {user}"


def versions():
    bubblewrap = subprocess.run(["bwrap", "--version"], capture_output=True, text=True).stdout.split()[-1]
    packages = {name: importlib.metadata.version(name) for name in ("nbgrader", "ipykernel", "numpy")}
    return packages | {"python": platform.python_version(), "bubblewrap": bubblewrap}


def main():
    parser = argparse.ArgumentParser(description="Attack nbgrader and ours.")
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    words = options.words
    chosen = [attack for attack in ATTACKS if not words or any(word in attack.name for word in words)]
    kept = json.loads(RESULT.read_text("utf-8"))["attacks"] if words and RESULT.exists() else []
    rows = {row["attack"]: row for row in kept}
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(options.jobs) as pool:
        files = course(Path(scratch))
        for attack, row in zip(chosen, pool.map(compare, chosen, [files] * len(chosen)), strict=True):
            told = (f"{row[who]['verdict']} ({row[who]['how']})" for who in ("nbgrader", "ours"))
            print(f"{attack.name}: nbgrader {', ours '.join(told)}", flush=True)
            rows[attack.name] = row
            keep([rows[attack.name] for attack in ATTACKS if attack.name in rows])
    for who in ("nbgrader", "ours"):
        print(f"{who}: {sum(row[who]['verdict'] == 'held' for row in rows.values())} of {len(rows)} held")


def compare(attack, files):
    """A row of the table."""
    row = {"item": attack.item, "attack": attack.name}
    return row | {"nbgrader": attacked(attack, files, NBGRADER), "ours": attacked(attack, files, OURS)}


def keep(rows):
    about = {"date": date.today().isoformat(), "machine": machine(), "versions": versions()}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(about | {"attacks": rows}, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
