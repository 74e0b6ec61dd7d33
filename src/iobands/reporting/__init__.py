"""Reporting: digest, pages, figures, JSON and explanations of a site's status."""
