"""Texts, lines and documents for the packages above."""

from __future__ import annotations

from iobands.views.alert_lines import (
    address_of,
    by_day,
    cause_text,
    command_on,
    details,
    named,
    news_text,
    subject,
    title,
)
from iobands.views.notes import asked_text
from iobands.views.peers import peers_text
from iobands.views.writing import (
    MAIL_WIDTH,
    Block,
    DocumentFormat,
    age_text,
    at_system,
    blocks,
    command_text,
    day_text,
    due_text,
    fitted,
    listed,
    nearest,
    no_samples,
    output_width,
    percent,
    plural,
    ratio_text,
    share_text,
    size_text,
    some,
    summary,
    time_text,
    view_options,
    worst_member,
    written,
)
