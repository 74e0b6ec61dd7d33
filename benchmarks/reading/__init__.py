"""The benchmark of reading: perflogs as they are after ten years, and what reading them costs."""
