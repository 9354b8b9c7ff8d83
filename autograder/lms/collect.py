"""`nbgrader zip_collect` on a download of a learning platform: nothing that a student handed in stops it."""

import os
import re
import shutil
import zipfile

from nbgrader.plugins.zipcollect import ExtractorPlugin, FileNameCollectorPlugin
from nbgrader.utils import unzip

from autograder import clean

MOST = 60  # characters of a file's name that are kept


class LmsNames(FileNameCollectorPlugin):
    """nbgrader's own plugin, which also takes two files of one student that go by one name, and any character.

    nbgrader ends the whole collection there. Here the second file is named `<chapter>-2`; which counts is decided when
    they are graded.
    """

    def __init__(self, **settings):
        super().__init__(**settings)
        self.taken = set()

    def collect(self, submitted_file):
        """Whose file it is and how it is named here, or None where that is not plain."""
        found = super().collect(submitted_file)
        if not found:
            return None
        plain = name = re.sub(r"[^\w() -]", "_", found["file_id"]).strip()[:MOST] or "notebook"
        number = 1
        while (found["student_id"], name) in self.taken:
            number += 1
            name = f"{plain}-{number}"
        self.taken.add((found["student_id"], name))
        return found | {"file_id": name}


class OuterZip(ExtractorPlugin):
    """nbgrader's own plugin, but for archives that students handed in: these stay as they are.

    nbgrader unpacks them too, and one that is broken, or a thousand times as large unpacked, ends the collection. So
    does a file in the download whose name leads elsewhere (`a\\..\\b.ipynb`), or is too long.
    """

    def extract(self, archive_path, extracted_path):
        """Unpack the downloads into folders of their own; what is no archive is copied."""
        for folder, _, names in os.walk(archive_path):
            to = os.path.normpath(os.path.join(extracted_path, os.path.relpath(folder, archive_path)))
            os.makedirs(to, exist_ok=True)
            for name in names:
                path = os.path.join(folder, name)
                stem, ending = os.path.splitext(name)
                if ending in self.zip_ext and zipfile.is_zipfile(path):
                    self._unpack(path, os.path.join(to, stem))
                elif ending in self.zip_ext:
                    unzip(path, to, zip_ext=self.zip_ext, create_own_folder=True, tree=False)
                else:
                    shutil.copy(path, os.path.join(to, name))

    def _unpack(self, path, to):
        with zipfile.ZipFile(path) as archive:
            for one in archive.infolist():
                try:
                    archive.extract(one, to)  # it leaves out what would lead elsewhere, and makes no links
                except Exception as error:  # the others are collected
                    self.log.warning("Skipped %s: %s", clean.line(one.filename)[:100], clean.line(error)[:300])
