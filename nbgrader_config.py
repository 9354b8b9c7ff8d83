"""nbgrader's configuration: stock nbgrader and `python -m autograder` work on the same course."""

import os
import sys

from autograder.course import PACKAGE

c = get_config()  # noqa: F821, nbgrader defines it

# nbgrader calls `alembic` by name; this finds it where the environment is not activated.
tools, path = os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)
if tools not in path.split(os.pathsep):
    os.environ["PATH"] = tools + os.pathsep + path

c.CourseDirectory.course_id = PACKAGE
c.CourseDirectory.source_directory = "_build/source"  # made by `make exercises`, never committed
c.CourseDirectory.release_directory = "exercises"
c.ClearSolutions.code_stub = {"python": "raise NotImplementedError"}
c.ExecutePreprocessor.timeout = 60  # seconds a cell
# `nbgrader zip_collect`: names as Canvas (lovelaceada_LATE_<user>_<submission>_<chapter>-1.ipynb) and Moodle
# (Ada Lovelace_<participant>_assignsubmission_file/<chapter>.ipynb) give them; the number is the student's id. Older
# Moodles end the folder with _, or put all into the file's name. Learners choose their own names, their files' and,
# in a zip, folders': a path that could also be read as another student's is left out.
c.FileNameCollectorPlugin.named_regexp = (
    r"(?s)(?>.*?/extracted/)"
    r"(?:(?:(?!_[0-9]+_(?:[0-9]+_|assignsubmission_file))[^/])+/)?"  # the zip's own name
    r"(?:(?!_[0-9]+_(?:[0-9]+_|assignsubmission_file))[^/])+"  # the student's
    r"_(?P<student_id>[0-9]+)"
    r"_(?:[0-9]+_(?![0-9]+_|assignsubmission_file)|assignsubmission_file(?:_?/|_))(?!.*[0-9]_assignsubmission_file)"
    r"(?P<file_id>[^/.][^/]*?)(?:-[0-9]+|\s*\([0-9]+\))?\.ipynb$"
)
c.ZipCollectApp.collector_plugin = "autograder.lms.collect.LmsNames"
c.ZipCollectApp.extractor_plugin = "autograder.lms.collect.OuterZip"

# Settings of `python -m autograder`, which nbgrader passes over.
c.Autograder.seed = 0  # hidden cases are drawn from it: set your own for a class, and keep it to yourself
c.Autograder.group = ""  # a group of this machine that may read and write what is graded; "": only you
c.Autograder.seed_per_student = False  # True: each student's hidden cases are drawn from a seed of their own
c.Autograder.course_version = ""  # a class is graded by one version of the course only; "": by any
c.Autograder.book = ""  # where your class reads the book on the web, for the links in the feedback
c.Autograder.allowed_system_calls = []  # what a submission may ask of the kernel besides; see the book on isolation
