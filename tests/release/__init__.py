"""What is released: one wheel with the package and the suite."""
