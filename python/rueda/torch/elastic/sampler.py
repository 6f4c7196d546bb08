# SPDX-License-Identifier: Apache-2.0
"""A sampler that knows what of an epoch is done, whatever the ranks are."""

from __future__ import annotations

import torch.utils.data

from rueda.common import sampler

__all__ = ["ElasticSampler"]


class ElasticSampler(sampler.ElasticSampler, torch.utils.data.Sampler):
    __doc__ = sampler.ElasticSampler.__doc__
