"""The dashboard: static files for a browser, opened from a disk or served by any web server.

docs/dashboard.md describes the files and what each shows.
"""
