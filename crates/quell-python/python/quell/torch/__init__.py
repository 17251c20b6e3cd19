"""Private training of your own `torch.nn.Module`.

Quell draws the batches, decides how much each record is shortened, adds secure noise and pays from the ledger. PyTorch
computes lengths and sums of gradients. `train` is one call; `Private` is a loop with your optimizer.
"""

from ..descents import DescentPlan, Step
from .private import Private, Trained, train

__all__ = ["DescentPlan", "Private", "Step", "Trained", "train"]
