"""Estimates of many means at once, with less total error than the observations themselves.

The public names are listed in ``__init__.pyi`` and loaded when they are first used, so that the
command line starts fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
