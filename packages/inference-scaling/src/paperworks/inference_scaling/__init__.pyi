from .cost import Allocation as Allocation
from .cost import Hardware as Hardware
from .cost import Plan as Plan
from .cost import Prices as Prices
from .cost import Utilization as Utilization
from .cost import plan as plan
from .demand import InferenceDemand as InferenceDemand
from .fitting import Convergence as Convergence
from .fitting import Fit as Fit
from .fitting import HeldOut as HeldOut
from .fitting import LossLawRegressor as LossLawRegressor
from .fitting import fit as fit
from .law import ScalingLaw as ScalingLaw
from .optimum import constrained_allocation as constrained_allocation
from .optimum import first_order_residual as first_order_residual
from .optimum import optimal_allocation as optimal_allocation
from .runs import Runs as Runs
from .runs import RunsWarning as RunsWarning
from .runs import read_runs as read_runs

__all__ = [
    "Allocation",
    "Convergence",
    "Fit",
    "Hardware",
    "HeldOut",
    "InferenceDemand",
    "LossLawRegressor",
    "Plan",
    "Prices",
    "Runs",
    "RunsWarning",
    "ScalingLaw",
    "Utilization",
    "constrained_allocation",
    "first_order_residual",
    "fit",
    "optimal_allocation",
    "plan",
    "read_runs",
]
