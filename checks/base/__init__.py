"""The common parts of all checks: site configuration, job, guards, covariates and proofs."""
