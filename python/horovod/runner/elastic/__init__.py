# SPDX-License-Identifier: Apache-2.0
"""Elastic jobs, by the names of Horovod's modules."""
