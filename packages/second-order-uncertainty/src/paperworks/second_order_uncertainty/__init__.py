"""How much of a prediction's uncertainty is aleatoric and how much epistemic, by distances.

An ensemble, MC-dropout, Bayesian or evidential classifier gives, for each input, a distribution Q
on the simplex of class distributions. Its total, aleatoric and epistemic uncertainty are the
Wasserstein distances of Q to the nearest distributions that have none of each (Sale, Bengs, Caprio
and Hüllermeier, ICML 2024, arXiv 2312.00995), computed here exactly and without a solver.

The public names are listed in ``__init__.pyi`` and loaded when they are first used, so that the
command line starts fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
