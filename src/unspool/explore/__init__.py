"""The explorer: one page on which a person writes a denoising problem and sees the network that solves it."""

from unspool.explore.single_file import LARGEST, page, write_page

__all__ = ["LARGEST", "page", "write_page"]
