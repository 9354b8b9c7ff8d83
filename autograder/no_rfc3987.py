"""Imported before whatever loads jsonschema, which would load rfc3987_syntax where it finds it.

That takes two seconds, and checks addresses that no notebook and no page has.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)
