# SPDX-License-Identifier: Apache-2.0
"""Services between launcher and hosts, which Rueda's launcher does without."""
