"""The control group of a sandbox, in a folder made to look like the kernel's: what is asked for, and what without."""

import os
from pathlib import Path

import pytest

from autograder.sandbox import host as sandbox
from autograder.sandbox.cgroup import MemoryGroup
from autograder.sandbox.host import Sandbox

FILES = {"cgroup.procs": "", "memory.max": "max", "memory.swap.max": "max", "memory.current": "5000000",
         "memory.events": "low 0\noom 3\noom_kill 2\n"}  # fmt: skip


class Kernel:
    """A tree of groups: a new folder has the files that it has in a real one."""

    def __init__(self, folder, monkeypatch, own="/user.slice/session.scope", delegated=("/user.slice",)):
        self.root, self.proc = folder / "cgroup", folder / "proc"
        self.proc.mkdir()
        (self.proc / "cgroup").write_text(f"4:memory:/old\n0::{own}\n")
        (self.proc / "mountinfo").write_text(
            f"24 30 0:22 / /proc rw - proc proc rw\n35 24 0:30 / {self.root} rw,nosuid - cgroup2 cgroup2 rw\n"
        )
        Path(f"{self.root}{own}").mkdir(parents=True)
        for place in (self.root, *self.root.rglob("*")):
            inner = f"/{place.relative_to(self.root)}".rstrip(".")
            (place / "cgroup.subtree_control").write_text("cpu memory pids" if inner in delegated else "cpu")
        mkdir, rmdir = Path.mkdir, Path.rmdir

        def make(path, *arguments, **options):
            mkdir(path, *arguments, **options)
            if path.name.startswith("autograder-"):
                for name, text in FILES.items():
                    (path / name).write_text(text)

        def remove(path):
            for file in path.iterdir() if path.name.startswith("autograder-") else ():
                file.unlink()
            rmdir(path)

        monkeypatch.setattr(Path, "mkdir", make)
        monkeypatch.setattr(Path, "rmdir", remove)

    def groups(self):
        return list(self.root.rglob("autograder-*"))


def test_a_group_beside_this_process(tmp_path, monkeypatch):
    kernel = Kernel(tmp_path, monkeypatch)
    group = MemoryGroup.make(kernel.proc)
    assert kernel.groups() == [group.folder] and group.folder.parent == kernel.root / "user.slice"
    assert (group.folder / "memory.swap.max").read_text() == "0" and group.kills() == 2
    group.bound(1_000_000)
    assert (group.folder / "memory.max").read_text() == "6000000"
    os.write(group.door, b"0")
    assert (group.folder / "cgroup.procs").read_text() == "0"
    group.close()
    assert kernel.groups() == []


def test_a_group_below_this_process(tmp_path, monkeypatch):
    kernel = Kernel(tmp_path, monkeypatch, own="/", delegated=("/",))
    group = MemoryGroup.make(kernel.proc)
    assert group.folder.parent == kernel.root
    group.close()


@pytest.mark.parametrize("lack", ["delegation", "version 2", "mount", "files"])
def test_where_none_can_be_had(tmp_path, monkeypatch, lack):
    kernel = Kernel(tmp_path, monkeypatch, delegated=() if lack == "delegation" else ("/user.slice",))
    if lack == "version 2":
        (kernel.proc / "cgroup").write_text("4:memory:/old\n")
    if lack == "mount":
        (kernel.proc / "mountinfo").write_text("24 30 0:22 / /proc rw - proc proc rw\n")
    if lack == "files":
        (kernel.root / "user.slice" / "cgroup.subtree_control").unlink()
    assert MemoryGroup.make(kernel.proc) is None and kernel.groups() == []


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    kernel = Kernel(tmp_path, monkeypatch)
    real = MemoryGroup.make
    monkeypatch.setattr(sandbox.MemoryGroup, "make", lambda: real(kernel.proc))
    return kernel


def test_a_sandbox_is_in_its_group_and_says_why_the_kernel_ended_it(kernel):
    cell = "import os, signal\ndef f(x): return x\ndef g(): os._exit(7)"
    with Sandbox(memory_mb=100) as box:
        (folder,) = kernel.groups()
        assert (folder / "cgroup.procs").read_text() == "0"
        assert (folder / "memory.max").read_text() == str(5_000_000 + (125 << 20))
        with box.session([cell], ["f", "g"]) as session:
            assert session.call("f", (1.0,), {}).value == 1.0
            assert "exit 7" in session.call("g", (), {}).error
            session.call("f", (1.0,), {})
            (folder / "memory.events").write_text("oom_kill 3\n")
            assert session.call("g", (), {}).error == "it used more than 100 MB of memory"
            assert session.call("f", (2.0,), {}).value == 2.0
    assert kernel.groups() == []


def test_a_submission_has_no_way_to_its_group(kernel):
    source = "import os\ndef f(): return [int(fd) for fd in os.listdir('/proc/self/fd')]"
    with Sandbox() as box, box.session([source], ["f"]) as session:
        assert max(session.call("f", (), {}).value) <= 4  # 0 to 3, and that of the list itself
        session.close()


def test_a_sandbox_that_may_not_join_does_without(kernel, monkeypatch):
    def refuse(self, size):
        raise PermissionError

    monkeypatch.setattr(MemoryGroup, "bound", refuse)
    with Sandbox() as box, box.session(["def f(x): return x"], ["f"]) as session:
        assert session.call("f", (1.0,), {}).value == 1.0 and box.group is None
    assert kernel.groups() == []
