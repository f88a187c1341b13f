"""The work behind ``unspool study ...``."""
