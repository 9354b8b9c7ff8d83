"""`jupyter-book`, less what costs a build of one page a third of its time and brings it nothing."""

import gc
import sys

gc.disable()  # the trees of the pages live until the end
sys.modules["rfc3987_syntax"] = None  # jsonschema would load it for two seconds, to check addresses that no page has

from jupyter_book.cli.main import main  # noqa: E402

main(prog_name="jupyter-book")
