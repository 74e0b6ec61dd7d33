"""The version of iobands and of its checks."""

__version__ = "1.0.0"
