"""Batches of named models with kernels of their own: the first layer, the hops and Adam for all trials at once."""

from unspool.study.batch.kernel.blueprints import Blueprint, blueprint
from unspool.study.batch.kernel.kernel_batch import KernelBatch

__all__ = ["Blueprint", "KernelBatch", "blueprint"]
