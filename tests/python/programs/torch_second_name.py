# SPDX-License-Identifier: Apache-2.0
"""horovod is a second name of the same modules; argv: the module."""

import importlib
import sys

name = sys.argv[1]
second = importlib.import_module(f"horovod.{name}")
first = importlib.import_module(f"rueda.{name}")
assert second is first, (second, first)
assert first.__name__ == first.__spec__.name == f"rueda.{name}", first.__spec__
