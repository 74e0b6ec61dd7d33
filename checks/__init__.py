"""The ReFrame checks. A package, so that the modules here can import one another."""
