"""benchmarks/gpu.py: the most important first, written after each part, and never run twice."""

import importlib.util
import json
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

    def run(page, size):
        module.ran.append((page, size))
        if page == module.broken:
            raise RuntimeError("no kernel")
        return {"measured": {"accuracy": 0.9}, "failed": ["AssertionError: "] * (page == module.wrong)}

    def throughput(machine, compiled, *_):
        module.ran.append((machine.precision, compiled))
        yield {"images_per_second": {"ours": 1.0}}

    module.broken = module.wrong = None
    monkeypatch.setattr(module.notebooks, "run", run)
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
    pages = [(page, "tiny") for page in gpu.notebooks.PAGES]
    assert gpu.ran == [*pages, ("float32", False), ("float32", True)]
    assert "timm" in capsys.readouterr().out.splitlines()[0]
    kept = json.loads(path.read_text())
    assert len(kept["parts"]) == 6 and kept["peers missing"] == ["timm"] and kept["machine"]["device"] == "cpu"
    assert gpu.main(["--cpu", "--result", str(path)]) == 0
    assert len(gpu.ran) == 6


def test_a_gpu_gets_both_precisions_with_and_without_compilation(gpu):
    machine = gpu.dataclasses.replace(gpu.pick_machine(), device="cuda", precision="bfloat16")
    for _, _, run in gpu.parts(machine, "full"):
        run()
    assert gpu.ran[:4] == [(page, "full") for page in gpu.notebooks.PAGES]
    assert gpu.ran[4:] == [("bfloat16", False), ("float32", False), ("bfloat16", True), ("float32", True)]


def test_what_fails_does_not_stop_the_rest(gpu, tmp_path):
    gpu.broken, gpu.wrong = gpu.notebooks.PAGES[:2]
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
