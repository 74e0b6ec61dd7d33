"""What samples and files are, for all other packages.

ReFrame's checks import it under a site's own Python: nothing here needs more than ReFrame brings.
"""
