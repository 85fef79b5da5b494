"""Whose run it is: runs of the page take turns, because they only compute, and one thread of Python computes at a time.

Runs side by side would each end when nearly all do, and change places two thousand times a second.
"""

from __future__ import annotations

import threading

TURN = threading.Lock()
"""Held by the run that computes."""
