"""The programs that measure, a folder each: the checks (`check`) and the results (`result`)."""
