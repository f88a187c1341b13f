"""The command ``unspool``."""
