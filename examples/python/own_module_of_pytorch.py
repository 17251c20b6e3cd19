# %% [markdown]
# # Your own module of PyTorch
#
# Train a network of yours with ε = 4. Quell draws the batches, clips, adds the noise and pays; PyTorch computes the
# gradients.

# %%
import torch
from sklearn.datasets import load_digits
from torch import nn

import quell
import quell.torch

torch.manual_seed(0)
digits, labels = load_digits(return_X_y=True)
X = torch.tensor(digits / 16, dtype=torch.float32).view(-1, 1, 8, 8)
y = torch.tensor(labels)
X_train, y_train, X_test, y_test = X[:1400], y[:1400], X[1400:], y[1400:]

# %% [markdown]
# The network has a group norm: a batch norm would mix the records of a batch, and is refused.


# %%
def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(4, 16), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(256, 10)
    )


# %% [markdown]
# One call trains it. The number of records is declared, because it would reveal something about them. The digits are
# public, so here it is no secret.

# %%
ledger = quell.Ledger.in_memory("digits", epsilon=20, delta=1e-5)
module = network()
optimizer = torch.optim.SGD(module.parameters(), lr=1.0, momentum=0.5)
trained = quell.torch.train(
    module, nn.CrossEntropyLoss(), (X_train, y_train), optimizer=optimizer,
    epsilon=4, records=1400, batch_size=350, epochs=25, ledger=ledger,
)
accuracy = (module(X_test).argmax(1) == y_test).float().mean().item()
print(f"accuracy {accuracy:.3f} with {trained.claim}")
assert accuracy > 0.75 and ledger.spent <= 4

# %% [markdown]
# With a loop of your own you can change the learning rate, test on public records, or stop. Nothing is charged before
# the first step; then all steps are.

# %%
module = network()
optimizer = torch.optim.SGD(module.parameters(), lr=1.0, momentum=0.5)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
trainer = quell.torch.Private(
    module, optimizer, nn.CrossEntropyLoss(), (X_train, y_train),
    epsilon=4, records=1400, batch_size=350, steps=100, ledger=ledger,
)
print(trainer.plan.claim, "with noise multiplier", trainer.plan.noise_multiplier)
for step in trainer:
    schedule.step()
accuracy = (module(X_test).argmax(1) == y_test).float().mean().item()
print(f"accuracy {accuracy:.3f}; {ledger}")
assert accuracy > 0.75 and len(ledger.charges) == 2

# %% [markdown]
# Freeze a layer, and only the others count: fewer numbers, less noise in all.

# %%
module[0].requires_grad_(False)
optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=0.5)
tuned = quell.torch.train(
    module, nn.CrossEntropyLoss(), (X_train, y_train), optimizer=optimizer,
    epsilon=1, records=1400, batch_size=350, epochs=5, ledger=ledger,
)
print(tuned.plan.what)
