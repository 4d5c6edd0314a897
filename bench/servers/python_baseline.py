"""The same app without this project: its `inference` called inside a Python web server's own process.

`python3 python_baseline.py KIND APP` prints its URL on stderr. "fastapi-def" and "fastapi-async" are a plain POST route of
FastAPI, on uvicorn with uvloop, without its access log; "fastapi-bytes" is bytes in, bytes out. "flask" is Flask's
development server, as Potassium ran it: one thread for each connection; "flask-bytes" is bytes in, bytes out.
"""

import importlib.util
import logging
import socket
import sys


def main():
    kind, path = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("app", path)
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    if hasattr(app, "init"):
        app.init()
    KINDS[kind](app.inference)


def fastapi_def(inference):
    from fastapi import FastAPI

    api = FastAPI()

    @api.post("/")
    def call(model_inputs: dict):
        return inference(model_inputs)

    serve(api)


def fastapi_async(inference):
    from fastapi import FastAPI

    api = FastAPI()

    @api.post("/")
    async def call(model_inputs: dict):
        return inference(model_inputs)

    serve(api)


def fastapi_bytes(inference):
    from fastapi import FastAPI, Request, Response

    api = FastAPI()

    @api.post("/")
    async def call(request: Request):
        return Response(inference(await request.body()), media_type="application/octet-stream")

    serve(api)


def serve(api):
    import uvicorn

    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(128)
    say(listener.getsockname()[1])
    config = uvicorn.Config(api, loop="uvloop", access_log=False, log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])


def flask(inference):
    from flask import jsonify, request

    serve_flask(lambda: jsonify(inference(request.get_json())))


def flask_bytes(inference):
    from flask import Response, request

    serve_flask(lambda: Response(inference(request.get_data()), mimetype="application/octet-stream"))


def serve_flask(call):
    from flask import Flask
    from werkzeug.serving import make_server

    api = Flask("baseline")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    api.add_url_rule("/", "call", call, methods=["POST"])
    server = make_server("127.0.0.1", 0, api, threaded=True)
    say(server.server_port)
    server.serve_forever()


def say(port):
    sys.stderr.write("http://127.0.0.1:%d\n" % port)
    sys.stderr.flush()


KINDS = {
    "fastapi-def": fastapi_def,
    "fastapi-async": fastapi_async,
    "fastapi-bytes": fastapi_bytes,
    "flask": flask,
    "flask-bytes": flask_bytes,
}

main()
