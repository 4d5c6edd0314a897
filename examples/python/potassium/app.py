"""The BERT quickstart as a Potassium app. Runs offline, in numpy, on the tiny model of examples/fill-mask."""

import os
import sys

from potassium import Potassium, Request, Response

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fill-mask"))
from bert import FillMask  # of the example beside this one

app = Potassium("my_app")


@app.init
def init():
    return {"model": FillMask()}


@app.handler("/")
def handler(context: dict, request: Request) -> Response:
    prompt = request.json.get("prompt")
    if prompt is None:
        return Response(json={"message": "No prompt provided"}, status=200)
    return Response(json={"outputs": context["model"](prompt)}, status=200)


if __name__ == "__main__":
    app.serve()
