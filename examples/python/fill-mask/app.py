"""BERT fills the gap: `{"prompt": "Hello I am a [MASK] model."}` -> the five likeliest words. In numpy, offline, on the tiny
model of examples/fill-mask."""

from bert import MASK, REACH, FillMask

example = {"prompt": "Hello I am a [MASK] model."}

unmask = None


def init():
    global unmask
    unmask = FillMask()


def inference(model_inputs):
    prompt = (model_inputs or {}).get("prompt")
    # As usual in Banana apps: wrong inputs get a normal answer, with status 200.
    if not isinstance(prompt, str) or prompt == "":
        return {"message": "No prompt provided"}
    if MASK not in unmask.tokens(prompt):
        return {"message": f"The prompt has no [MASK] in its first {REACH} tokens"}
    return unmask(prompt)
