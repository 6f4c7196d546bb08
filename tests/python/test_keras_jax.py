# SPDX-License-Identifier: Apache-2.0
"""Keras 3 on the back end of JAX; see keras_cases.py and keras_warning_cases.py."""

from __future__ import annotations

from keras_cases import *  # noqa: F403
from keras_warning_cases import *  # noqa: F403
from rank_cases import cases_of, run_cases

test_case = cases_of(__name__, needs=("keras", "jax"), limit_s=400, KERAS_BACKEND="jax")

if __name__ == "__main__":
    run_cases(globals(), "rueda.keras")
