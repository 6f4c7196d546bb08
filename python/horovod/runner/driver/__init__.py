# SPDX-License-Identifier: Apache-2.0
"""What Horovod's launcher asks of hosts; ruedarun's agents do that."""
