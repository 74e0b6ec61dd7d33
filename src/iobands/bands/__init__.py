"""The quartile bands of a system: their file, which one applies to a sample, and the verdict.

ReFrame's checks import it under a site's own Python: it needs PyYAML and jsonschema alone.
"""

from iobands.bands.band import (
    ABOVE,
    ACTIVE,
    BELOW,
    COLLAPSED,
    FROZEN,
    NO_BAND,
    PROVISIONAL,
    WITHIN,
    Band,
    Bands,
    Epoch,
    Limit,
    Span,
    Window,
    covered,
    log_fence,
)
from iobands.bands.file import epoch_text, load_bands, parse_bands, path_of, write_epoch
