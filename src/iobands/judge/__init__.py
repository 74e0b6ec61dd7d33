"""The judge: from the data of a site to verdicts, states, alerts and advice.

The judge uses no files, no clock and no text of a view.
"""
