"""Model size and training tokens that cost least over training and serving together.

`plan` finds them for a loss and a demand, in FLOPs or in money; `fit` estimates the scaling law
that it needs from training runs. The public names are listed in ``__init__.pyi`` and loaded when
they are first used, so that the command line starts fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
