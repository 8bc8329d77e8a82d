from . import axioms as axioms
from . import plots as plots
from . import wasserstein as wasserstein
from .distances import DistanceMeasure as DistanceMeasure
from .distances import solve_programmes as solve_programmes
from .distances import transport_distance as transport_distance
from .distributions import SecondOrder as SecondOrder
from .evaluation import label_budget_curve as label_budget_curve
from .evaluation import ood_auroc as ood_auroc
from .evaluation import rejection_curve as rejection_curve
from .measures import Decomposition as Decomposition
from .measures import decompose as decompose
from .measures import entropy as entropy
from .measures import labelwise_entropy as labelwise_entropy
from .measures import variance as variance

__all__ = [
    "Decomposition",
    "DistanceMeasure",
    "SecondOrder",
    "axioms",
    "decompose",
    "entropy",
    "label_budget_curve",
    "labelwise_entropy",
    "ood_auroc",
    "plots",
    "rejection_curve",
    "solve_programmes",
    "transport_distance",
    "variance",
    "wasserstein",
]
