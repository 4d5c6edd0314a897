"""Checks by hand what `checked_by_pydantic.py` has types for."""

from banana_serve import HttpError


def is_number(value):
    return isinstance(value, (int, float))


def is_item(item):
    return (
        isinstance(item, dict)
        and is_number(item.get("id"))
        and isinstance(item.get("label"), str)
        and is_number(item.get("score"))
        and isinstance(item.get("tags"), list)
        and all(isinstance(tag, str) for tag in item["tags"])
        and isinstance(item.get("box"), list)
        and all(map(is_number, item["box"]))
    )


def inference(model_inputs):
    prompt = model_inputs.get("prompt", "")
    items = model_inputs.get("items", [])
    if not isinstance(prompt, str):
        raise HttpError(422, "prompt is no text")
    if not isinstance(items, list) or not all(map(is_item, items)):
        raise HttpError(422, "an item is wrong")
    return {"chars": len(prompt), "items": len(items)}
