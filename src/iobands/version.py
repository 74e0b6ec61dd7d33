"""The version of iobands and of its checks."""

__version__ = "0.1.0"
