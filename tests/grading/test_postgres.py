"""A gradebook in a real PostgreSQL server, started here."""

import glob
import os
import shutil
import socket
import subprocess
import tempfile
import time

import pytest
from build import STUDENTS, notebook, submit


def program(name):
    """A server program; Debian and Ubuntu keep them off the PATH."""
    return shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)


@pytest.fixture(scope="module")
def server():
    """The address of a server that lives as long as these tests."""
    if program("initdb") is None:
        pytest.skip("PostgreSQL is not installed (Debian and Ubuntu: apt install postgresql)")
    user = {"user": "postgres"} if os.geteuid() == 0 else {}  # it refuses to run as root
    folder = tempfile.mkdtemp(prefix="postgres-")
    if user:
        shutil.chown(folder, "postgres")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **user}
    command = [program("initdb"), "-D", f"{folder}/data", "-U", "teacher", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(command, check=True, **quiet)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["-D", f"{folder}/data", "-h", "127.0.0.1", "-p", str(port), "-k", "", "-F"]
    process = subprocess.Popen([program("postgres"), *options], **quiet)
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert process.poll() is None and time.monotonic() < end, "PostgreSQL does not start"
            time.sleep(0.1)
    yield f"teacher@127.0.0.1:{port}/postgres"
    process.terminate()
    process.wait()
    shutil.rmtree(folder)


def test_a_class_in_postgresql(course, server):
    submit(course.folder, "ada", notebook(STUDENTS["ada"]))
    submit(course.folder, "zoë 李", notebook(STUDENTS["emil"]))
    submit(course.folder, "karl", "no notebook")
    url = f"postgresql://{server}"
    done = course.run("grade", "--gradebook", url)
    assert done.stdout.splitlines()[-1] == "3 submissions: 2 graded, 1 not readable; 3 in this run"
    assert not (course.folder / "gradebook.db").exists()
    rows = course.run("export", "--gradebook", url).stdout.splitlines()
    assert any(row.startswith("patchify,,,zoë 李,") and row.endswith(",8.8889,12.0") for row in rows)
    assert any(row.startswith("patchify,,,karl,") and row.endswith(",,12.0") for row in rows)
    assert "0 in this run" in course.run("grade", "--gradebook", url).stdout
    # What a person wrote stays there, too; stock nbgrader reads and writes the same gradebook.
    from autograder.gradebook import api

    with api.Gradebook(f"postgresql+psycopg://{server}", "patches-and-positions") as book:
        book.find_grade("check_patchify", "patchify", "patchify", "ada").manual_score = 1.5
        book.db.commit()
    course.run("grade", "--gradebook", url, "--force")
    with open(course.folder / "nbgrader_config.py", "a") as file:
        file.write(f"\nc.CourseDirectory.db_url = 'postgresql+psycopg://{server}'\n")
    assert any(row.endswith(",10.5,12.0") for row in course.run("export").stdout.splitlines())
    course.command("autograde", "patchify", "--force", "--student", "ada", module="nbgrader")
    assert any(row.endswith(",10.5,12.0") for row in course.run("export").stdout.splitlines())
