"""nbgrader's configuration: stock nbgrader and `python -m autograder` work on the same course."""

import os
import sys

c = get_config()  # noqa: F821, nbgrader defines it

# nbgrader calls `alembic` by name; this finds it where the environment is not activated.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath)

c.CourseDirectory.course_id = "patches-and-positions"
c.CourseDirectory.source_directory = "_build/source"  # made by `make exercises`, never committed
c.CourseDirectory.release_directory = "exercises"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
c.ExecutePreprocessor.timeout = 60  # seconds a cell
