"""Sandboxes to attack, and the check after each attack that nothing of it is left."""

import os

import pytest

from autograder.sandbox.host import Sandbox


@pytest.fixture(scope="session")
def box():
    limits = {"memory_mb": 300, "disk_mb": 16, "processes": 32, "files": 64}
    with Sandbox(("numpy",), time_limit=20, cell_limit=20, **limits) as box:
        yield box


@pytest.fixture(scope="session")
def hasty():
    """A sandbox for what would never end: its limits are short."""
    with Sandbox(("numpy",), time_limit=0.25, cell_limit=1, notebook_limit=60, memory_mb=300) as box:
        yield box


@pytest.fixture(scope="session")
def secret(tmp_path_factory):
    """A file such as a gradebook; no attack may read, change or remove it."""
    path = tmp_path_factory.mktemp("course") / "gradebook.db"
    path.write_text(os.urandom(16).hex())
    return path


@pytest.fixture
def attack(box, secret):
    """Run a submission and call its function `attack`; see that the next submission then fares as ever."""
    before = secret.read_text(), sorted(secret.parent.iterdir())
    used = [box]

    def run(source, *args, box=box):
        used.append(box)
        with box.session([source], ["attack"]) as session:
            return session.call("attack", args, {})

    yield run
    assert (secret.read_text(), sorted(secret.parent.iterdir())) == before
    for one in set(used):
        with one.session(["def double(x):\n    return 2 * x"], ["double"]) as session:
            outcome = session.call("double", (21.0,), {})
        assert outcome.kind == "returned" and outcome.value == 42.0
