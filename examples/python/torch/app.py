"""A small network on torch that learns the sine when a worker starts, and answers a batch of calls in one run."""

import math

import torch

STEPS = 1500

model = None


def init():
    global model
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(1, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    angles = torch.linspace(-math.pi, math.pi, 256).unsqueeze(1)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(angles), torch.sin(angles))
        loss.backward()
        optimizer.step()
    print(f"learned the sine: mean squared error {loss.item():.6f}")


def inference(model_inputs):
    return inference_batch([model_inputs], [])[0]


def inference_batch(inputs, ctxs):
    """Runs the network once for all calls and splits the output among them. Tensors can be returned as they are."""
    angles = [torch.tensor(one["angles"], dtype=torch.float32) for one in inputs]
    with torch.no_grad():
        sines = model(torch.cat(angles).unsqueeze(1)).squeeze(1)
    return [{"sines": part} for part in sines.split([len(one) for one in angles])]
