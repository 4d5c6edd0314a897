"""Returns what it was given."""


def inference(model_inputs):
    return model_inputs
