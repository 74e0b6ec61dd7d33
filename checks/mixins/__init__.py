"""What checks are put together from: each module gives a check one ability."""
