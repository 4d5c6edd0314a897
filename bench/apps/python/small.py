"""A model that does nothing: what remains is the cost of serving."""


def inference(model_inputs):
    prompt = model_inputs["prompt"]
    return {"prompt": prompt, "length": len(prompt)}
