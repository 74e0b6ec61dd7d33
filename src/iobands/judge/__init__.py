"""The judge: from what is known of a site to verdicts, states, alerts and advice.

No files, no clock and no words of a view.
"""
