"""One-shot compression of large labelled graphs: Random Edge Coding, bits-back coding with ANS."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
