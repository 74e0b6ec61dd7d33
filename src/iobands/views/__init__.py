"""Reporting: digest, page, figures, JSON and explanations of what is known of a site."""
