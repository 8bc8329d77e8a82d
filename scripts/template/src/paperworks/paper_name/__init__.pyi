from .shrinkage import james_stein as james_stein
from .shrinkage import james_stein_risk as james_stein_risk

__all__ = ["james_stein", "james_stein_risk"]
