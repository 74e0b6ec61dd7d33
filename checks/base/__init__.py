"""What all checks share: site configuration, job, guards, covariates and proofs."""
