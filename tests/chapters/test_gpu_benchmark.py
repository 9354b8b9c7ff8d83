"""benchmarks/gpu.py: the most important first, written after each part, and never run twice."""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def gpu(monkeypatch):
    """The command, with notebooks and models that take no time; what it ran stands in `gpu.ran`."""
    spec = importlib.util.spec_from_file_location("gpu", ROOT / "benchmarks" / "gpu.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ran = []

    def run(page, size, seconds):
        module.ran.append((page, size))
        if page == module.broken:
            raise RuntimeError("no kernel")
        return {"measured": {"accuracy": 0.9}, "failed": ["AssertionError: "] * (page == module.wrong)}

    def throughput(machine, compiled, seconds, configurations, models):
        assert list(models) == ["ours", "vit-pytorch"]
        module.ran.append((compiled, machine.precision, *configurations))
        yield {"images_per_second": {"ours": 1.0}}

    module.broken = module.wrong = None
    module.really_run_page = module.run_page
    monkeypatch.setattr(module, "run_page", run)
    monkeypatch.setattr(module.training, "throughput", throughput)
    monkeypatch.setattr(module.training, "missing_peers", lambda: ["timm"])
    return module


def test_without_a_gpu_nothing_is_run(gpu, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(gpu.torch.cuda, "is_available", lambda: False)
    assert gpu.main(["--result", str(tmp_path / "gpu.json")]) == 0
    assert "no GPU" in capsys.readouterr().out and gpu.ran == [] and list(tmp_path.iterdir()) == []


def test_parts_come_by_weight_and_are_not_run_again(gpu, tmp_path, capsys):
    path = tmp_path / "gpu.json"
    assert gpu.main(["--cpu", "--result", str(path)]) == 0
    pages = [(page, "tiny") for page in gpu.plain.PAGES]
    assert gpu.ran == [*pages, (False, "float32", "small"), (True, "float32", "small")]
    assert "timm" in capsys.readouterr().out.splitlines()[0]
    kept = json.loads(path.read_text())
    assert len(kept["parts"]) == 6 and kept["peers missing"] == ["timm"] and kept["machine"]["device"] == "cpu"
    assert gpu.main(["--cpu", "--result", str(path)]) == 0
    assert len(gpu.ran) == 6


def test_a_gpu_gets_both_precisions_with_and_without_compilation(gpu):
    machine = gpu.dataclasses.replace(gpu.pick_machine(), device="cuda", precision="bfloat16")
    for _, _, run in gpu.parts(machine, "full"):
        run(100.0)
    assert gpu.ran[:4] == [(page, "full") for page in gpu.plain.PAGES]
    sizes = ("small", "ViT-Ti/16")
    assert gpu.ran[4:] == list(itertools.product([False, True], ["bfloat16", "float32"], sizes))


def test_what_fails_does_not_stop_the_rest(gpu, tmp_path):
    gpu.broken, gpu.wrong = gpu.plain.PAGES[:2]
    path = tmp_path / "gpu.json"
    assert gpu.main(["--cpu", "--result", str(path)]) == 1
    done = json.loads(path.read_text())["parts"]
    assert len(gpu.ran) == 6 and len(done) == 5  # what broke is run again the next time, what was measured is kept
    gpu.broken = None
    assert gpu.main(["--cpu", "--result", str(path)]) == 0
    assert len(gpu.ran) == 7


def test_what_no_longer_fits_is_named(gpu, tmp_path, capsys):
    assert gpu.main(["--cpu", "--limit", "1", "--result", str(tmp_path / "gpu.json")]) == 0
    assert gpu.ran == []
    assert capsys.readouterr().out.count("give the command once more") == 6


def notebook(path, *sources):
    cells = [{"cell_type": "code", "source": source.splitlines(keepends=True)} for source in sources]
    path.write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": ["x = 1"]}, *cells]}))
    return path


def test_cells_run_without_jupyter_and_after_a_failed_one(gpu, tmp_path):
    path = notebook(tmp_path / "page.ipynb", "a = 2\nb = a", "assert a == 3, 'two'\nb = 5", "b = b + 1\nimport dis")
    names, failed = gpu.plain.run_cells(path)
    assert (names["a"], names["b"]) == (2, 3)
    assert failed == ["AssertionError: two"]


def test_a_page_that_takes_too_long_or_breaks_off_is_named(gpu, tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    monkeypatch.setattr(gpu.plain, "__file__", str(program))
    program.write_text("import time\ntime.sleep(60)")
    with pytest.raises(RuntimeError, match=r"stopped after 0 s: give the command once more"):
        gpu.really_run_page("small_vit", "tiny", 0.3)
    program.write_text("print('no room')\nraise SystemExit(3)")
    with pytest.raises(RuntimeError, match=r"status 3:\nno room"):
        gpu.really_run_page("small_vit", "tiny", 60)


BARE = """
from importlib.machinery import PathFinder

find = PathFinder.find_spec
absent = ("nbformat", "nbclient", "IPython", "ipykernel", "jupyter_client", "timm", "vit_pytorch")
PathFinder.find_spec = staticmethod(lambda name, *rest: None if name.partition(".")[0] in absent else find(name, *rest))
"""


@pytest.mark.slow
def test_the_command_needs_no_jupyter(tmp_path):
    """The whole of it at the tests' size, where neither Jupyter nor a peer is installed."""
    (tmp_path / "sitecustomize.py").write_text(BARE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    path = tmp_path / "gpu.json"
    command = [sys.executable, ROOT / "benchmarks" / "gpu.py", "--cpu", "--limit", "900", "--result", path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = json.loads(path.read_text())
    assert len(found["parts"]) == 6 and found["peers missing"] == ["timm", "vit-pytorch"]
    assert all(part["found"]["failed"] == [] for name, part in found["parts"].items() if name.startswith("notebook"))
    (rows, _) = (part["found"] for name, part in found["parts"].items() if name.startswith("images"))
    assert {row["mode"] for row in rows} == {"training", "inference"}
