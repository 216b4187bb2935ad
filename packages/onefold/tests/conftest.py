"""That this file lies here makes ``oracle`` and ``columns`` importable from every test below it."""

from __future__ import annotations

import os

# The servers of these tests, hundreds of processes, have better things to do than to compile ahead.
os.environ.setdefault("ONEFOLD_WARM_UP", "0")
