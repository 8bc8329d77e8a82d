from .cost import Allocation as Allocation
from .cost import Hardware as Hardware
from .cost import Plan as Plan
from .cost import Prices as Prices
from .cost import Utilization as Utilization
from .cost import plan as plan
from .demand import InferenceDemand as InferenceDemand
from .law import ScalingLaw as ScalingLaw
from .optimum import constrained_allocation as constrained_allocation
from .optimum import first_order_residual as first_order_residual
from .optimum import optimal_allocation as optimal_allocation

__all__ = [
    "Allocation",
    "Hardware",
    "InferenceDemand",
    "Plan",
    "Prices",
    "ScalingLaw",
    "Utilization",
    "constrained_allocation",
    "first_order_residual",
    "optimal_allocation",
    "plan",
]
