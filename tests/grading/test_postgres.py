"""A gradebook in a real PostgreSQL server, started here."""

import pytest
from build import STUDENTS, notebook, submit
from server import postgresql, program


@pytest.fixture(scope="module")
def server():
    """The address of a server that lives as long as these tests."""
    if program("initdb") is None:
        pytest.skip("PostgreSQL is not installed (Debian and Ubuntu: apt install postgresql)")
    with postgresql("-F") as address:  # -F: without waiting for the disk
        yield address


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
    from autograder.grading.gradebook import api

    with api.Gradebook(f"postgresql+psycopg://{server}", "patches-and-positions") as book:
        book.find_grade("check_patchify", "patchify", "patchify", "ada").manual_score = 1.5
        book.db.commit()
    course.run("grade", "--gradebook", url, "--force")
    with open(course.folder / "nbgrader_config.py", "a") as file:
        file.write(f"\nc.CourseDirectory.db_url = 'postgresql+psycopg://{server}'\n")
    assert any(row.endswith(",10.5,12.0") for row in course.run("export").stdout.splitlines())
    course.command("autograde", "patchify", "--force", "--student", "ada", module="nbgrader")
    assert any(row.endswith(",10.5,12.0") for row in course.run("export").stdout.splitlines())
