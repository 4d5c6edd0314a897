"""Types for the bodies of `small-json` and `big-json`."""

from typing import List

from pydantic import BaseModel


class Item(BaseModel):
    id: float
    label: str
    score: float
    tags: List[str]
    box: List[float]


class Input(BaseModel):
    prompt: str = ""
    items: List[Item] = []


def inference(model_inputs: Input):
    return {"chars": len(model_inputs.prompt), "items": len(model_inputs.items)}
