"""Definitions of Potassium apps, and the worker's calls of their functions."""

import asyncio
import json
import traceback
import unittest
import warnings
from types import ModuleType
from typing import Any, List

from banana_worker.adapters.potassium_app import from_potassium_app
from banana_worker.in_worker import served_by
from banana_worker.protocol.messages import Call
from banana_worker.reply.answer import WholeAnswer, answer_of
from banana_worker.run.call_context import CallContext, InitContext, WorkerInfo
from banana_worker.run.loaded_app import ANY_BATCH, LoadedApp
from calls import call_with
from potassium import InvalidEndpointTypeException, Potassium, Response, RouteAlreadyInUseException

WORKER = WorkerInfo(3, None, 1)
NOTHING: Any = None


def load(potassium: Potassium, **beside: object) -> LoadedApp:
    module = ModuleType("app")
    vars(module).update(beside, some_name=potassium)
    loaded = from_potassium_app(module, None)
    assert loaded is not None
    return loaded


def context_of(call: Call, body: bytes = b"") -> CallContext:
    return CallContext(call, body, InitContext(WORKER, NOTHING, NOTHING))


def init(app: LoadedApp) -> None:
    settled(app.init(InitContext(WORKER, NOTHING, NOTHING)))


def settled(output: Any) -> Any:
    return asyncio.run(output) if asyncio.iscoroutine(output) else output


def answer(app: LoadedApp, route: str = "/", input: object = "in") -> WholeAnswer:
    call = call_with(route=route)
    whole = answer_of(settled(app.handle(route, input, context_of(call))), call)
    assert isinstance(whole, WholeAnswer)
    return whole


# Hosts that end in a number, with the result of `URL.canParse`.
ADDRESSES = (
    *("1.2.3.4", "1.2.3.4.", "1.2.3", "4294967295", "127.1.65535", "0xffffffff", "0x", "1.0x", "00000000001"),
    *("name@1.2.3.4:80", "[::ffff:1.2.3.4]", "1.a", "0xg", "a.0xz", "a.example.com", "1.2.3.4.example"),
)
NO_ADDRESSES = (
    *("999.1.1.1", "1.2.3.256", "256.1", "4294967296", "127.1.65536", "0x1ff.1", "08", "1.2.3.08", "1.2.3.4.5", "1..2"),
    *("a.1", "a.0x", "%39%39%39.1.1.1", "name:secret@999.1.1.1:80"),
)


class FindingTest(unittest.TestCase):
    def test_an_app_is_found_under_any_name_and_where_it_is_served(self) -> None:
        app = Potassium("x")
        app.handler(lambda cache, json_in: 1)
        self.assertEqual(len(load(app).description.routes), 1)
        served = from_potassium_app(ModuleType("empty"), app)
        self.assertEqual(len(served.description.routes if served else []), 1)
        self.assertIsNone(from_potassium_app(ModuleType("empty"), None))

    def test_several_apps_are_refused_unless_one_is_served(self) -> None:
        one, two = Potassium("one"), Potassium("two")
        two.handler("/two")(lambda context, request: Response())
        self.assertEqual([each.path for each in load(two, app=two).description.routes], ["/two"])
        with self.assertRaisesRegex(
            TypeError, r"^`app` and `some_name` are Potassium apps, but a file serves only one: "
        ):
            load(one, app=two)
        with self.assertRaisesRegex(TypeError, r"^`a`, `b` and `some_name` are Potassium apps"):
            load(one, a=two, b=Potassium("three"))
        module = ModuleType("app")
        vars(module).update(app=one, other=two)
        served = from_potassium_app(module, two)
        self.assertEqual([each.path for each in served.description.routes if served], ["/two"])

    def test_serve_ends_the_import_and_ignores_its_arguments_with_a_warning(self) -> None:
        app = Potassium("x")
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")

            def execute() -> None:
                app.serve("0.0.0.0", port=8000)
                self.fail("the lines behind it ran")

            self.assertIs(served_by(execute), app)
        self.assertRegex(str(said[0].message), "ignores its arguments")
        with self.assertRaisesRegex(RuntimeError, "banana-serve app.py"):
            app.serve()

    def test_options_of_other_versions_are_accepted_with_one_warning(self) -> None:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            app = Potassium("x", 2, gpu=True, mode="optimize", backend="FastAPI")
            app.optimize("model")
        names = "gpu, mode, backend, experimental_num_workers"
        expected = f"Potassium('x'): {names} have no effect; see banana-serve --help for the server's options"
        self.assertEqual([str(each.message) for each in said], [expected])
        self.assertEqual(app.to_optimize, ["model"])
        # An app for a backend whose requests are bytes checks which one it has.
        self.assertEqual(app.backend, "Flask")
        plain = Potassium("x")
        plain.optimize("model")
        self.assertEqual(plain.to_optimize, [])


def answer_nothing(context: Any, request: Any) -> None:
    pass


class RoutesTest(unittest.TestCase):
    def test_routes_have_their_kind_input_webhook_and_batch(self) -> None:
        app = Potassium("x")
        app.handler("/a")(answer_nothing)
        app.handler("b", raw=True)(answer_nothing)
        app.handler(path="/many", batch=True)(answer_nothing)
        app.background(path="/c")(answer_nothing)
        app.async_handler("/d", result_webhook="http://own.test/")(answer_nothing)
        app.websocket("/w")(answer_nothing)

        def told() -> Any:
            return [tuple(route[:5]) for route in load(app).description.routes]

        self.assertEqual(
            told(),
            [
                ("/a", "handler", "json", "", 1),
                ("/b", "handler", "any", "", 1),
                ("/many", "handler", "json", "", ANY_BATCH),
                ("/c", "background", "json", "", 1),
                ("/d", "background", "json", "http://own.test/", 1),
                ("/w", "websocket", "any", "", 1),
            ],
        )
        app.result_webhook(url="http://all.test/")
        self.assertEqual([route[3] for route in told()], ["http://all.test/"] * 3 + ["", "http://own.test/", ""])

    def test_inputs_of_a_route_may_run_again_if_the_route_or_the_config_says_so(self) -> None:
        app = Potassium("x")
        app.handler("/as-config")(answer_nothing)
        app.background("/never", repeatable=False)(answer_nothing)
        app.background("/five", repeatable=True, attempts=5)(answer_nothing)
        for config, expected in (({}, [1, 1, 5]), ({"repeatable": True, "attempts": 2}, [2, 1, 5])):
            routes = load(app, config=config).description.routes
            self.assertEqual([route.attempts for route in routes], expected)
        wrong: Any
        for wrong in ({"repeatable": 1}, {"attempts": 0}, {"attempts": "3"}):
            self.assertRaises(TypeError, lambda: app.background("/wrong", **wrong)(answer_nothing))

    def test_a_route_is_taken_once_and_the_servers_own_are_refused(self) -> None:
        app = Potassium("x")
        app.handler("/")
        app.background("foo")(len)
        for route in ("", "/", "/foo", "/_k/warmup", "/_k/mine", "/__status__", "/healthcheck", "/readyz/m"):
            for declare in (app.handler, app.background, app.websocket):
                with self.assertRaises(RouteAlreadyInUseException):
                    declare(route)
        with self.assertRaises(RouteAlreadyInUseException):
            app.handler(lambda cache, json_in: 1)

    def test_an_invalid_webhook_is_refused_at_its_definition(self) -> None:
        app = Potassium("x")
        for url in (
            *("/hook", "ftp://x/", "http://", "http:///", "http://[::", "http://[::/", "http://host:99999/"),
            *("http://host:port/", "http://%zz/", "http://a<b/", "http://name:secret@:80/", "http://name:secret@/"),
            *(f"http://{host}/" for host in NO_ADDRESSES),
        ):
            with self.subTest(url):
                with self.assertRaises(ValueError) as raised:
                    app.result_webhook(url)
                error = raised.exception
                said = "begin with http: or https:, not ftp:" if url[0] == "f" else "be absolute, such as https:"
                self.assertIn(f"the URL of a webhook must {said}", str(error))
                self.assertNotIn("secret", "".join(traceback.format_exception(ValueError, error, None)))
        for url in (
            "http://host",
            "HTTPS://u:p@host:65535/a?b#c",
            "http://[::1]:80/",
            "http://host:/",
            "http://h%41t/",
            *(f"http://{host}/" for host in ADDRESSES),
        ):
            app.result_webhook(url)

    def test_invalid_routes_are_refused_and_decorators_return_their_functions(self) -> None:
        app = Potassium("x")
        with self.assertRaises(InvalidEndpointTypeException):
            app.background(5)  # type: ignore[arg-type]
        for declare in (lambda: app.handler("/a?b"), lambda: app.result_webhook("ftp://x")):
            with self.assertRaises(ValueError):
                declare()
        for declare in (lambda: app.handler("/x", raw=1), lambda: app.init(5)):  # type: ignore[arg-type]
            with self.assertRaises(TypeError):
                declare()

        def func(*_: object) -> None: ...

        for decorator in (app.init, app.handler("/1"), app.background("/2"), app.websocket("/3")):
            self.assertIs(decorator(func), func)
        self.assertIs(app.result_webhook(url="http://x.test/")(app.handler(func)), func)


class InitTest(unittest.TestCase):
    def test_the_dictionary_that_init_returns_is_the_context(self) -> None:
        async def later() -> dict:
            return {"a": 1}

        for func in (lambda: {"a": 1}, lambda number: {"a": number - 2}, lambda x={"a": 1}: x, later):
            app = Potassium("x")
            app.init(func)
            init(load(app))
            self.assertEqual(app.get_context(), {"a": 1})

    def test_init_gets_the_number_of_its_worker_and_the_context_that_every_init_gets(self) -> None:
        seen: List[Any] = []

        def note(*given: Any) -> dict:
            seen.append(given)
            return {}

        def keyword(*, ctx: Any) -> dict:
            return note(ctx)

        ctx = InitContext(WORKER, NOTHING, NOTHING)
        for func, given in (
            (lambda: note(), ()),
            (lambda number: note(number), (3,)),
            (lambda number, ctx: note(number, ctx), (3, ctx)),
            (lambda number, second: note(number, second), (3, ctx)),
            (lambda ctx: note(ctx), (ctx,)),
            (lambda ctx, number: note(ctx, number), (ctx, 3)),
            (lambda number=1, ctx=None: note(number, ctx), (1, ctx)),
            (lambda *numbers: note(*numbers), (3,)),
            (keyword, (ctx,)),
        ):
            app = Potassium("x")
            app.init(func)
            settled(load(app).init(ctx))
            self.assertEqual(seen.pop(), given)

    def test_a_cache_that_init_set_is_the_context(self) -> None:
        app = Potassium("x")
        app.init(lambda: app.set_cache({"a": 1}))
        app.handler(lambda cache, json_in: [cache, json_in])
        loaded = load(app)
        init(loaded)
        self.assertEqual(json.loads(bytes(answer(loaded).body)), [{"a": 1}, "in"])
        app.set_context({"b": 2})
        self.assertEqual(app.get_cache(), {"b": 2})

    def test_an_init_that_does_not_return_a_dictionary_fails(self) -> None:
        for returned in (None, 5, [1]):
            app = Potassium("x")
            app.init(lambda: returned)
            with self.assertRaisesRegex(TypeError, r"init\(\) must return a dictionary.*it returned"):
                init(load(app))


class AnswerTest(unittest.TestCase):
    def answer_to(self, output: object, **options: bool) -> WholeAnswer:
        app = Potassium("x")
        app.handler("/", **options)(lambda context, request: output)
        return answer(load(app))

    def test_a_response_becomes_the_answer(self) -> None:
        rows: Any = [
            (Response(json={"a": [float("nan")]}), (200, "application/json", ""), b'{"a":[null]}'),
            (Response(status=404, body="é"), (404, "text/plain; charset=utf-8", ""), "é".encode()),
            (Response(body=bytearray(b"a")), (200, "application/octet-stream", ""), b"a"),
            (Response(), (200, "", ""), b""),
            (
                Response(body=b"a", headers={"content-type": "x/y", "A": "b", "C": ["d", "e"]}),
                (200, "x/y", "A\nb\nC\nd\nC\ne"),
                b"a",
            ),
        ]
        for response, head, body in rows:
            whole = self.answer_to(response)
            self.assertEqual((tuple(whole.head)[:3], bytes(whole.body)), (head, body))

    def test_an_output_that_is_not_a_response_fails_the_call(self) -> None:
        rows: Any = [
            (None, "Potassium Response object not returned: the handler returned None; write `return Resp"),
            ({"json": 1}, "Potassium Response object not returned"),
            (Response(body=5), "Potassium Response object body must be"),  # type: ignore[arg-type]
            (Response(body={"a": 1}), "Potassium Response object body must be"),
            (Response(headers={"a": "b\nc"}), 'header "a" has a line break'),
            (Response(headers={"Content-Type": "a" * 70_000}), "headers are 70000 characters; 65536 are allowed"),
            (ValueError("returned"), "returned"),
        ]
        for output, message in rows:
            with self.assertRaisesRegex(Exception, message):
                self.answer_to(output)

    def test_a_background_function_returns_a_value_or_nothing(self) -> None:
        for output, body in ((None, b"null"), ([1], b"[1]"), (Response(json=2), b"2")):
            app = Potassium("x")
            app.background("/")(lambda context, request: output)
            self.assertEqual(bytes(answer(load(app)).body), body)
        app = Potassium("x")
        app.background("/")(lambda context, request: (each for each in ()))
        with self.assertRaisesRegex(TypeError, "return it in a Response to stream it"):
            answer(load(app))

    def test_an_async_handler_is_awaited(self) -> None:
        app = Potassium("x")

        @app.handler()
        async def handler(context: dict, request: Any) -> Response:
            await asyncio.sleep(0)
            return Response(json=request.json)

        self.assertEqual(bytes(answer(load(app)).body), b'"in"')

    def test_a_batch_has_an_answer_for_each_call_and_an_invalid_one_fails_alone(self) -> None:
        async def late() -> Response:
            return Response(json="late")

        mine = ValueError("mine")
        entries = [mine, Response(json=1), 5, late()]
        app = Potassium("x")
        app.handler("/b", batch=True)(lambda context, requests: entries)
        ctxs = [context_of(call_with(route="/b")) for _ in entries]
        replies = load(app).handle_batch("/b", list(range(4)), ctxs)
        self.assertIs(replies[0], mine)
        self.assertEqual(replies[1].body.value, 1)
        self.assertRegex(str(replies[2]), "not returned")
        self.assertEqual(settled(replies[3]).body.value, "late")

    def test_a_batch_of_one_has_one_answer(self) -> None:
        app = Potassium("x")
        app.handler("/b", batch=True)(lambda context, requests: [Response(json=each.json) for each in requests])
        self.assertEqual(bytes(answer(load(app), "/b").body), b'"in"')
        app.handler("/none", batch=True)(lambda context, requests: [])
        with self.assertRaisesRegex(Exception, "returned 0 entries for 1 call"):
            answer(load(app), "/none")


if __name__ == "__main__":
    unittest.main()
