"""A session: one at a time, on perflogs that can be written, recorded, and limited.

ReFrame's own process imports this room: nothing here needs more than Python.
"""
