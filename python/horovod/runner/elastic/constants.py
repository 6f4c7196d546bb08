# SPDX-License-Identifier: Apache-2.0
"""Words of elastic jobs."""

RESET_LIMIT_EXCEEDED_MESSAGE = "the set of ranks has changed {} times, the limit of --reset-limit"
