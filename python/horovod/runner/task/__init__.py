# SPDX-License-Identifier: Apache-2.0
"""What Horovod's launcher runs on hosts; ruedarun's agents do that."""
