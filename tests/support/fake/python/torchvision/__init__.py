# SPDX-License-Identifier: Apache-2.0
"""In place of torchvision, which has no small build: as much as two examples use.

``datasets.MNIST`` is scikit-learn's digits at the size of MNIST's, ``models`` are
those of ours that have the names.
"""

from . import datasets, models, transforms

__all__ = ["datasets", "models", "transforms"]
