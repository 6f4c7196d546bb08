# SPDX-License-Identifier: Apache-2.0
"""hello.py; in its first life rank 1 ends badly. argv: the folder of hello.py."""

import importlib
import os
import sys

sys.path.insert(0, sys.argv[1])
hello = importlib.import_module("hello")
is_bad = os.environ["RANK"] + os.environ["TORCHELASTIC_RESTART_COUNT"] == "10"
sys.exit(hello.main() or is_bad)
