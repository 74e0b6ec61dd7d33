"""Model: the columns of a sample, the key of a series, and documents with schemas.

ReFrame's checks import it under a site's own Python: nothing here needs more than ReFrame brings.
"""
