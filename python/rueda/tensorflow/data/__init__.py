# SPDX-License-Identifier: Apache-2.0
"""Preprocessing by ``tf.data`` in processes of its own: compute_service.py, compute_worker.py."""
