"""Packs of named models with kernels of their own: the first layer, the hops and Adam for all trials at once."""

from unspool.study.pack.fast.blueprint import Blueprint, blueprint
from unspool.study.pack.fast.pack import FastPack

__all__ = ["Blueprint", "FastPack", "blueprint"]
