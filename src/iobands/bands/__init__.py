"""The quartile bands of a system: their file, which one applies to a sample, and the verdict.

ReFrame's checks import it under a site's own Python: it needs only PyYAML and jsonschema.
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
    Span,
    Spans,
    Window,
    log_fence,
)
from iobands.bands.file import bands_path, epoch_yaml, load_bands, parse_bands, write_epoch
