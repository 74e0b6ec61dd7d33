"""What every check stands on: the site's offer, the job, its guards, and what a run must prove."""
