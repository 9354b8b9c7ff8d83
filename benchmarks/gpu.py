"""What a GPU shows, in one command of at most eight minutes: the notebooks of the GPU pages at full size, then images
per second beside timm and vit-pytorch.

    PYTHONPATH=. python benchmarks/gpu.py

Parts stand in the order of their weight. Each is written to results/gpu.json when it ends, and is not run again; one
that no longer fits into the time is named and left out, and runs when the command is given once more. Peers that are
not installed are named. Without a GPU it does nothing; `--cpu` shows on a processor, at the tests' size, that it works.

It needs the repository, PyTorch, Matplotlib, scikit-learn and tqdm, but no Jupyter. Where Fashion-MNIST cannot be
downloaded, FASHION_MNIST names the folder of its four files.
"""

import argparse
import dataclasses
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks" / "runs"), str(ROOT / "benchmarks")]

import plain  # noqa: E402
import training  # noqa: E402

from book.gpu.training import describe_run, pick_machine  # noqa: E402

RESULT = ROOT / "benchmarks" / "results" / "gpu.json"
LIMIT = 480.0  # seconds for the whole command
ROW = 4.0  # seconds for each row of the comparison


def run_page(page, size, seconds):
    """Run a page's notebook in a process of its own: see `plain.main` for what comes back.

    Parameters
    ----------
    page, size : str
    seconds : float
        Then it is stopped. What it has trained goes on from its checkpoint the next time.

    Returns
    -------
    dict

    Raises
    ------
    RuntimeError
        If it was stopped or broke off; with the end of what it said.
    """
    checkpoints = ROOT / "_build" / "runs" / "gpu" / f"{page}-{size}"
    environment = os.environ | {"COURSE_SIZE": size, "COURSE_CHECKPOINTS": str(checkpoints)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        command = [sys.executable, plain.__file__, page, str(path)]
        said = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": plain.NOTEBOOKS}
        try:
            done = subprocess.run(command, env=environment, timeout=seconds, **said)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"stopped after {seconds:.0f} s: give the command once more") from None
        if not path.exists():
            raise RuntimeError(f"it broke off with status {done.returncode}:\n{done.stdout[-2000:]}")
        return json.loads(path.read_text(encoding="utf-8"))


def parts(machine, size):
    """Name, least seconds that should be left, and function of each part, the most important first.

    A function takes the seconds that are left.
    """
    for page in plain.PAGES:
        run = functools.partial(run_page, page, size)
        yield f"notebook {page}", 60 if size == "full" else 5, run
    models = {name: make for name, make in training.MODELS.items() if name not in training.missing_peers()}
    sizes = training.CONFIGURATIONS
    if size == "tiny":  # as small as a step can be, on a processor
        sizes = {"small": (sizes["small"][0], {"cpu": 8})}
    least = {False: 30, True: 120} if size == "full" else {False: 2, True: 2}  # compiling takes its time
    for compiled in (False, True):
        for precision in dict.fromkeys((machine.precision, "float32")):
            there = dataclasses.replace(machine, precision=precision)
            for model, batches in sizes.items():
                run = functools.partial(
                    compare, there, compiled, ROW if size == "full" else 0.1, model, batches, models
                )
                yield f"images per second, {model}, {precision}{', compiled' * compiled}", least[compiled], run


def compare(machine, compiled, row, model, batches, models, seconds):
    """The rows of one size of model; they take their time whatever is left."""
    return list(training.throughput(machine, compiled, row, {model: batches}, models))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true", help="on a processor, at the tests' size")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for the whole command")
    parser.add_argument("--result", type=Path, default=RESULT)
    options = parser.parse_args(arguments)
    machine, began = pick_machine(), time.monotonic()
    if machine.device != "cuda" and not options.cpu:
        print("There is no GPU here, so nothing was run; --cpu shows that the command works.")
        return 0
    size = "tiny" if options.cpu else "full"
    missing = training.missing_peers()
    print(f"{machine.name}, {machine.precision}, torch {torch.__version__}"
          + (f"; not here and left out: {', '.join(missing)} (make peers)" if missing else ""))  # fmt: skip
    kept = json.loads(options.result.read_text(encoding="utf-8")) if options.result.exists() else {}
    done = kept.get("parts", {}) if kept.get("size") == size else {}
    failed = []
    for name, least, run in parts(machine, size):
        left = options.limit - (time.monotonic() - began)
        if name in done:
            print(f"{name}: done before")
            continue
        if left < least:
            print(f"{name}: left out, {left:.0f} s are left: give the command once more")
            continue
        start = time.monotonic()
        try:
            found = run(left)
        except Exception:  # the next part may still show something
            failed.append(name)
            traceback.print_exc()
            continue
        done[name] = {"seconds": round(time.monotonic() - start, 1), "found": found}
        content = {"size": size} | describe_run(machine) | {"peers missing": missing, "parts": done}
        options.result.parent.mkdir(parents=True, exist_ok=True)
        options.result.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        broken = found["failed"] if isinstance(found, dict) else []
        failed += [name] * bool(broken)
        print(f"{name}: {done[name]['seconds']} s", *(broken or ["all right"]), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
