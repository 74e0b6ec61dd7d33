"""Results: perflogs and run reports in, one frame of samples and the missing runs out."""
