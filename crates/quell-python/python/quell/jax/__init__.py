"""Private training of your own JAX function.

Quell draws the batches, decides how much each record is shortened, adds secure noise and pays from the ledger. JAX
computes the gradients of records. `train` is one call; `Private` is a loop with your update.
"""

from ..descents import DescentPlan, Step
from .private import Private, Trained, train

__all__ = ["DescentPlan", "Private", "Step", "Trained", "train"]
