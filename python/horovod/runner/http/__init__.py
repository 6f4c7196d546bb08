# SPDX-License-Identifier: Apache-2.0
"""The key-value servers of Horovod's launcher."""
