"""A custom service as the worker runs it."""

import asyncio
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, List
from unittest import mock

from mms_support import FakeCtx, Loaded, call_of, module_of

from banana_worker.adapters.mms_service import from_service
from banana_worker.protocol.errors import ServeError
from banana_worker.formats.reply import ResultBody, StreamBody
from banana_worker.reply.answer import answer_of
from mms.context import ReadItem


class ServiceCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        self.folder = os.path.realpath(folder.name)

    def started(self, source: str, **options: Any) -> Loaded:
        loaded = Loaded(source, self.folder, **options)
        self.assertIsNone(loaded.init())
        return loaded

    def run_batch(self, loaded: Loaded, *bodies: Any) -> Any:
        self.ctxs = [FakeCtx(i) for i in range(len(bodies))]
        return loaded.app.handle_batch("/", [ReadItem({"body": body}, []) for body in bodies], self.ctxs)  # type: ignore[arg-type]


class HandlersTest(ServiceCase):
    def found(self, source: str, handler: str = "") -> Any:
        app: Any = from_service(module_of("__name__ = 'service'\n" + source), None, self.folder)
        if app is None or handler:
            from banana_worker.adapters.service_handler import find_handler

            found = find_handler(module_of("__name__ = 'service'\n" + source), handler)
            return None if found is None else (found.style, found.entry.__name__)
        return app._handler.style, app._handler.entry.__name__

    def test_the_function_handle_or_the_only_class_with_that_method_is_the_handler(self) -> None:
        both = "def handle(d, c): pass\nclass A:\n  def handle(self, d, c): pass"
        self.assertEqual(self.found(both), ("function", "handle"))
        self.assertEqual(self.found("class Help: pass\nclass A:\n  def handle(self, d, c): pass"), ("class", "A"))
        inherited = "from ts.torch_handler.base_handler import BaseHandler\nclass A(BaseHandler): pass"
        self.assertEqual(self.found(inherited), ("class", "A"))

    def test_a_name_chooses_the_handler_and_an_absent_one_leaves_the_rules(self) -> None:
        two = "class A:\n  def handle(self, d, c): pass\nclass B(A): pass\ndef score(d, c): pass\nx = 1"
        self.assertIsNone(self.found(two))
        self.assertEqual(self.found(two, "B"), ("class", "B"))
        self.assertEqual(self.found(two, "score"), ("function", "score"))
        self.assertIsNone(self.found(two, "x"))
        self.assertEqual(self.found("class A:\n  def handle(self, d, c): pass", "handle"), ("class", "A"))

    def test_a_decorated_class_may_be_named(self) -> None:
        """Like the decorators of wrapt: they have the attributes of the class that they wrap."""
        wrapper = (
            "class Wrapper:\n  __class__ = property(lambda self: type)\n  __name__ = 'Wrapper'\n"
            "  def __call__(self): return self\n  def handle(self, d, c): pass\nscore = Wrapper()"
        )
        self.assertEqual(self.found(wrapper, "score"), ("class", "Wrapper"))

    def test_every_callable_handler_is_accepted(self) -> None:
        service = "class S:\n    def initialize(self, context): pass\n    "
        good = "def handle(self, data, context): pass"
        for source in (
            "def handle(*args): pass",
            "def handle(data, context=None, *, more=1): pass",
            "import functools\nhandle = functools.partial(lambda more, data, context: 1, 5)",
            "class A:\n    def __call__(self, data, context): pass\nhandle = A()",
            service + "@staticmethod\n    def handle(data, context): pass",
            service + "@classmethod\n    def handle(cls, data, context): pass",
            service + "handle = lambda *given: 1",
            "class S:\n    async def initialize(self, context): pass\n    " + good,
            "class S:\n    initialize = None\n    " + good,
            # The parameters that a decorator adds or takes are not checked.
            "import functools\ndef of(f):\n    return functools.wraps(f)(lambda self, data, context: f(self, data))\n"
            "class S:\n    @of\n    def handle(self, data): pass",
        ):
            with self.subTest(source):
                self.assertIsNotNone(from_service(module_of("__name__ = 'service'\n" + source), None, self.folder))

    def test_exports_of_a_wrong_type_are_named(self) -> None:
        for source, message in (
            ("shutdown = 5", "^`shutdown` is an int; make it a function or remove it$"),
            ("config = {'repeatable': 1}", "^`config`: repeatable must be True or False$"),
        ):
            with self.assertRaisesRegex(TypeError, message):
                from_service(module_of("def handle(d, c): pass\n" + source), None, self.folder)


class LoadTest(ServiceCase):
    def test_a_function_is_loaded_with_none_in_the_models_folder(self) -> None:
        loaded = self.started(
            "import os\ndef handle(data, context):\n"
            "  if data is None:\n"
            "    context.metrics.add_counter('Loads', 1)\n"
            "    global seen; seen = (os.getcwd(), context.request_ids, dict(context.system_properties))\n"
            "    return None\n"
            "  return [list(seen)]",
            gpu="GPU-5",
            threads=2,
            batch_size=4,
        )
        (answer,) = self.run_batch(loaded, 1)
        cwd, ids, properties = answer.body.value
        self.assertEqual((cwd, ids), (self.folder, None))
        self.assertEqual(
            properties,
            {"model_dir": self.folder, "gpu_id": 0, "batch_size": 4, "server_name": "MMS", "server_version": "0.1.0"},
        )
        self.assertEqual([(one.name, one.call_ids) for one in loaded.metrics], [("Loads", [])])

    def test_loading_the_model_may_raise_and_may_be_async(self) -> None:
        with self.assertRaises(ZeroDivisionError):
            Loaded("class A:\n  def initialize(self, c): 1 / 0\n  def handle(self, d, c): pass", self.folder).init()
        loaded = Loaded(
            "class A:\n  async def initialize(self, c): self.word = 'late'\n  async def handle(self, d, c): return [self.word]",
            self.folder,
        )
        asyncio.run(loaded.init())
        (answer,) = asyncio.run(self.run_batch(loaded, 1))
        self.assertEqual(answer.body, ResultBody("late"))

    def test_the_manifest_of_the_folder_is_known(self) -> None:
        handler = "def handle(data, context):\n  return data and [context.manifest]"
        (answer,) = self.run_batch(self.started(handler), 1)
        self.assertIsNone(answer.body.value)
        inf = Path(self.folder, "MAR-INF")
        inf.mkdir()
        (inf / "MANIFEST.json").write_text('{"model": {"modelName": "m"}}')
        (answer,) = self.run_batch(self.started(handler), 1)
        self.assertEqual(answer.body.value, {"model": {"modelName": "m"}})
        (inf / "MANIFEST.json").write_text("[")
        with self.assertRaisesRegex(ValueError, "MANIFEST.json is not JSON: "):
            Loaded(handler, self.folder)
        (inf / "MANIFEST.json").write_text("[" * 50_000 + "]" * 50_000)
        with self.assertRaisesRegex(ValueError, "MANIFEST.json is nested too deeply$"):
            Loaded(handler, self.folder)

    def test_config_has_options_and_raw_items_is_one_of_them(self) -> None:
        source = "def handle(d, c): return d and [c.system_properties['batch_size']]\n"
        loaded = self.started(source + "config = {'batch_size': 8, 'raw_items': True, 'repeatable': True}")
        self.assertEqual(loaded.app.description.model_options, {"batchSize": 8, "rawItems": True})
        self.assertTrue(loaded.app.repeatable and loaded.app.wishes("/").raw_items)
        self.assertEqual(self.run_batch(loaded, 1)[0].body.value, 8)
        self.assertFalse(
            self.started(source + "config = {'rawItems': True}", raw_items=False).app.wishes("/").raw_items
        )

    def test_a_handler_turns_the_reading_of_items_off_in_its_environment(self) -> None:
        handle = "def handle(d, c): pass\n"
        for name in ("MMS_DECODE_INPUT_REQUEST", "TS_DECODE_INPUT_REQUEST"):
            with mock.patch.dict(os.environ):
                imported = f"import os\nos.environ['{name}'] = 'false'\n" + handle
                self.assertTrue(self.started(imported).app.wishes("/").raw_items)
                # The operator's option and the file's `config` go before the environment.
                self.assertFalse(self.started(imported, raw_items=False).app.wishes("/").raw_items)
                in_config = imported + "config = {'rawItems': False}"
                self.assertFalse(self.started(in_config).app.wishes("/").raw_items)
            with mock.patch.dict(os.environ):
                loading = f"import os\ndef handle(d, c): os.environ['{name}'] = 'false'"
                self.assertTrue(self.started(loading).app.wishes("/").raw_items)
            with mock.patch.dict(os.environ, {name: "true"}):
                self.assertFalse(self.started(handle).app.wishes("/").raw_items)

    def test_a_service_may_have_a_shutdown_function(self) -> None:
        loaded = self.started("def handle(d, c): pass\ndef shutdown(): return 'ended'")
        self.assertEqual(loaded.app.shutdown(), "ended")
        self.assertTrue(loaded.app.has_shutdown)
        without = self.started("def handle(d, c): pass").app
        self.assertIsNone(without.shutdown())
        self.assertFalse(without.has_shutdown)


class AnswersTest(ServiceCase):
    def test_each_item_has_its_result_in_order(self) -> None:
        loaded = self.started("def handle(data, context): return data and [item['body'] * 2 for item in data]")
        self.assertEqual([one.body for one in self.run_batch(loaded, 1, "a")], [ResultBody(2), ResultBody("aa")])
        answer = loaded.app.handle("/", ReadItem({"body": 4}, []), FakeCtx(1))  # type: ignore[arg-type]
        self.assertEqual((answer.head.status, answer.body), (200, ResultBody(8)))

    def test_status_and_headers_set_for_an_item_are_in_its_answer(self) -> None:
        loaded = self.started(
            "def handle(data, context):\n"
            "  if data is None: return\n"
            "  context.set_response_status(507, 'Own phrase', 1)\n"
            "  context.set_response_content_type(1, 'text/csv')\n"
            "  context.set_response_header(1, 'X-A', 5)\n"
            "  context.set_response_header(1, 'Content-Length', 1)\n"
            "  return ['a', 'b']"
        )
        plain, own = self.run_batch(loaded, 1, 2)
        self.assertEqual(tuple(plain.head), (200, "", "", ""))
        self.assertEqual(tuple(own.head), (507, "text/csv", "X-A\n5", "Own phrase"))

    def test_a_content_type_longer_than_headers_may_be_is_refused(self) -> None:
        loaded = self.started(
            "def handle(data, context):\n"
            "  if data is None: return\n"
            "  context.set_response_content_type(0, 'a' * 70_000)\n"
            "  return ['a', 'b']"
        )
        refused, other = self.run_batch(loaded, 1, 2)
        self.assertIsInstance(refused, ServeError)
        self.assertIn("headers are 70000 characters", str(refused))
        self.assertEqual(other.body, ResultBody("b"))

    def test_an_output_that_is_not_a_list_of_the_right_length_fails_each_item_with_the_message_of_multi_model_server(
        self,
    ) -> None:
        for returned, message in (
            ("None", "Invalid model predict output"),
            ("('a', 'b')", "Invalid model predict output"),
            ("(x for x in data)", "Invalid model predict output"),
            ("['a']", "number of batch response mismatched"),
            ("['a'] * 3", "number of batch response mismatched"),
        ):
            with self.subTest(returned):
                loaded = self.started(f"def handle(data, context): return data and {returned}")
                for answer in self.run_batch(loaded, 1, 2):
                    self.assertIsInstance(answer, ServeError)
                    self.assertEqual((answer.code, answer.message), ("SERVE_OUTPUT_INVALID", message))
                self.assertTrue(all(ctx.forgotten for ctx in self.ctxs))

    def test_an_exception_in_the_list_is_the_failure_of_its_item(self) -> None:
        loaded = self.started(
            "from mms.service import PredictionException\n"
            "def handle(data, context): return data and [PredictionException('no', 422), 'b']"
        )
        failed, fine = self.run_batch(loaded, 1, 2)
        self.assertEqual((failed.error_code, fine.body), (422, ResultBody("b")))

    def test_an_exception_passes_after_the_metrics_of_the_batch_are_sent(self) -> None:
        loaded = self.started(
            "def handle(data, context):\n"
            "  if data is None: return\n"
            "  context.metrics.add_counter('All', 2)\n"
            "  context.metrics.add_time('One', 1.5, 1)\n"
            "  context.metrics.add_error('Bad', 'why')\n"
            "  raise MemoryError"
        )
        with self.assertRaises(MemoryError):
            self.run_batch(loaded, 1, 2)
        told = [(one.kind, one.name, one.value, one.unit, one.call_ids) for one in loaded.metrics]
        self.assertEqual(
            told,
            [("counter", "All", 2, "count", [0, 1]), ("time", "One", 1.5, "ms", [1]), ("error", "Bad", "why", "", [])],
        )
        self.assertEqual(loaded.metrics[0].dimensions, "ModelName\nm\nLevel\nModel")
        self.assertTrue(all(ctx.forgotten for ctx in self.ctxs))

    def test_a_batch_that_may_run_again_keeps_its_bodies(self) -> None:
        loaded = self.started("config = {'repeatable': True}\ndef handle(data, context):\n  if data: raise ValueError")
        with self.assertRaises(ValueError):
            self.run_batch(loaded, 1, 2)
        self.assertFalse(any(ctx.forgotten for ctx in self.ctxs))
        with self.assertRaises(ValueError):
            self.run_batch(loaded, 1)
        self.assertTrue(self.ctxs[0].forgotten)

    def test_emitted_metrics_are_not_sent_again(self) -> None:
        loaded = self.started(
            "from mms.service import emit_metrics\n"
            "from mms.metrics.metric import Metric\n"
            "def handle(data, context):\n"
            "  if data is None: return\n"
            "  context.metrics.add_counter('Now', 1, 1)\n"
            "  emit_metrics(context.metrics.store)\n"
            "  emit_metrics([Metric('Own', 5, 'MB', [], 'r1')])\n"
            "  context.metrics.add_counter('Later', 1)\n"
            "  return ['a', 'b']"
        )
        self.run_batch(loaded, 1, 2)
        self.assertEqual(
            [(one.kind, one.name, one.unit, one.call_ids) for one in loaded.metrics],
            [("counter", "Now", "count", [1]), ("gauge", "Own", "MB", [1]), ("counter", "Later", "count", [0, 1])],
        )

    def test_emitted_metrics_may_have_numbers_of_other_types(self) -> None:
        loaded = self.started(
            "from decimal import Decimal\n"
            "from mms.service import emit_metrics\n"
            "from mms.metrics.metric import Metric\n"
            "def handle(data, context):\n"
            "  if data is None: return\n"
            "  emit_metrics([Metric('A', Decimal('1.5'), 'ms', []), Metric('B', 2, 'ms', []), Metric('C', 'why', '', [])])\n"
            "  return ['a']"
        )
        self.run_batch(loaded, "x")
        self.assertEqual(
            [(type(one.value), one.value) for one in loaded.metrics], [(float, 1.5), (int, 2), (str, "why")]
        )

    def test_a_metric_of_a_service_gets_the_dimension_level(self) -> None:
        loaded = self.started(
            "from mms.service import emit_metrics\n"
            "from mms.metrics.dimension import Dimension as D\n"
            "from mms.metrics.metric import Metric\n"
            "def handle(data, context):\n"
            "  if data is None: return\n"
            "  told = [('Plain', 1, []), ('Words', 'w', []), ('Other', 1, [D('Level', 'Host')]), ('Full', 1, [D('Level', 'Error')])]\n"
            "  emit_metrics([Metric(name, value, '', own) for name, value, own in told])\n"
            "  context.metrics.add_metric_to_cache('Made', 'km', ['To']).add_or_update(1, ['x'])\n"
            "  return ['a']"
        )
        self.run_batch(loaded, 1)
        self.assertEqual(
            [(one.name, one.dimensions.replace("\n", ":")) for one in loaded.metrics],
            [
                ("Plain", "Level:Model"),
                ("Words", "Level:Error"),
                ("Other", "Level:Host:Level:Model"),
                ("Full", "Level:Error"),
                ("Made", "To:x:Level:Model"),
            ],
        )

    def test_emitted_metrics_are_checked_like_added_ones(self) -> None:
        loaded = self.started(
            "from mms.service import emit_metrics\n"
            "from mms.metrics.dimension import Dimension\n"
            "from mms.metrics.metric import Metric\n"
            "def handle(data, context):\n"
            "  if data is None: return\n"
            "  emit_metrics([Metric('Fine', 1, 'ms', []), Metric('Calls', 1, 'ms', [Dimension('Caller', data[0]['body'])])])\n"
            "  return ['a']"
        )
        for caller, problem in (
            ("a\nLevel", "its name must not be empty, and its texts must not contain line breaks"),
            ("x" * 5000, "its texts are 5013 characters; 4096 are allowed"),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), f'metric "Calls": {problem}'):
                self.run_batch(loaded, caller)
        self.assertEqual(loaded.metrics, [])

    def test_results_may_be_awaitables_of_their_own(self) -> None:
        loaded = self.started(
            "async def late(fails):\n  if fails: raise ValueError('mine')\n  return 'late'\n"
            "def handle(data, context): return data and ['now', late(False), late(True)]"
        )
        now, late, failed = asyncio.run(self.run_batch(loaded, 1, 2, 3))
        self.assertEqual([now.body, late.body, str(failed)], [ResultBody("now"), ResultBody("late"), "mine"])


def chunks_of(answer: Any) -> Any:
    return answer_of(answer, call_of())


class StreamsTest(ServiceCase):
    STREAMS = (
        "def words(context):\n  yield 'one '\n  context.metrics.add_counter('Words', 1, 0)\n  yield 'two'\n"
        "async def later():\n  yield 'three'\n"
        "def handle(data, context): return data and [words(context), later()]"
    )

    def test_a_generator_is_a_stream_and_its_batch_ends_with_the_last(self) -> None:
        loaded = self.started(self.STREAMS)
        answers = self.run_batch(loaded, 1, 2)
        self.assertTrue(all(isinstance(one.body, StreamBody) and one.body.type_from_chunk for one in answers))
        self.assertEqual(list(chunks_of(answers[0])), [b"one ", b"two"])
        self.assertEqual([(one.name, one.call_ids) for one in loaded.metrics], [("Words", [0])])
        self.assertFalse(self.ctxs[0].forgotten, "another stream of the batch runs")

        async def read_all() -> List[Any]:
            return [chunk async for chunk in chunks_of(answers[1])]

        self.assertEqual(asyncio.run(read_all()), [b"three"])
        self.assertTrue(self.ctxs[0].forgotten)

    def test_a_stream_that_ends_while_the_next_batch_runs_takes_nothing_from_it(self) -> None:
        """Its client has left, and the app closes it late."""
        loaded = self.started(
            "def words():\n  yield 'one'\n"
            "def handle(data, context):\n"
            "  if not data or data[0]['body'] is None: return data and [words()]\n"
            "  context.set_response_status(201, 'Made', 0)\n"
            "  data[0]['body']()\n"
            "  return ['made']"
        )
        stream = chunks_of(self.run_batch(loaded, None)[0])
        (answer,) = self.run_batch(loaded, stream.close)
        self.assertEqual((answer.head.status, answer.head.phrase), (201, "Made"))

    def test_a_stream_that_never_began_ends_when_it_is_closed(self) -> None:
        loaded = self.started(self.STREAMS)
        answers = self.run_batch(loaded, 1, 2)
        first, second = map(chunks_of, answers)
        first.close()
        first.close()
        asyncio.run(second.aclose())
        self.assertTrue(self.ctxs[1].forgotten)


class OldServicesTest(ServiceCase):
    SOURCE = (
        "from mms.model_service.mxnet_model_service import SingleNodeService\n"
        "class Adder(SingleNodeService):\n"
        "  def __init__(self, model_name, model_dir, manifest, gpu=None):\n"
        "    self.facts = [model_name, model_dir, manifest['Model']['Model-Name'], gpu]\n"
        "  def _preprocess(self, data): return [sum(one) for one in data]\n"
        "  def _inference(self, data): return [one + 1 for one in data]\n"
        "  def _postprocess(self, data):\n"
        "    names = [one['data_name'] for one in (self.signature or {'inputs': []})['inputs']]\n"
        "    return [{'sums': data, 'facts': self.facts, 'names': names}]\n"
    )

    def write(self, name: str, value: Any) -> None:
        Path(self.folder, name).write_text(json.dumps(value))

    def test_a_class_of_the_first_form_gets_a_value_for_each_input_of_its_signature(self) -> None:
        self.write("MANIFEST.json", {"Model": {"Model-Name": "sum", "Signature": "signature.json"}})
        inputs = [{"data_name": "a"}, {"data_name": "b"}]
        self.write("signature.json", {"input_type": "application/json", "inputs": inputs})
        loaded = self.started(self.SOURCE, gpu="1")
        fields = {"a": bytearray(b"[1, 2]"), "b": bytearray(b"(3, 4)")}
        items = [ReadItem(fields, []), ReadItem({"body": [1]}, [])]
        answers = loaded.app.handle_batch("/", items, [FakeCtx(0), FakeCtx(1)])  # type: ignore[arg-type]
        facts = ["m", self.folder, "sum", 0]
        self.assertEqual(
            [one.body.value for one in answers],
            [{"sums": sums, "facts": facts, "names": ["a", "b"]} for sums in ([4, 8], [2, 2])],
        )

    def test_without_a_signature_it_gets_the_body(self) -> None:
        self.write("MANIFEST.json", {"Model": {"Model-Name": "sum"}})
        loaded = self.started(self.SOURCE)
        self.assertEqual(self.run_batch(loaded, [1, 2])[0].body.value["sums"], [4])

    def test_an_input_that_is_not_json_is_a_client_error(self) -> None:
        self.write("MANIFEST.json", {"Model": {"Model-Name": "sum", "Signature": "s.json"}})
        self.write("s.json", {"input_type": "application/json", "inputs": [{"data_name": "data"}]})
        loaded = self.started(self.SOURCE)
        self.addCleanup(sys.setrecursionlimit, sys.getrecursionlimit())
        sys.setrecursionlimit(10**6)  # as an app may
        for text in (b"[", b"[" * 200_000, b"-" * 100_000 + b"1", b"{[1]: 2}", b"(" + b"1," * 131_072 + b")"):
            with self.subTest(text[:10]):
                with self.assertRaises(Exception) as raised:
                    self.run_batch(loaded, bytearray(text))
                self.assertEqual(getattr(raised.exception, "error_code", None), 400)

    def test_a_class_of_the_first_form_is_found_in_archives_of_version_0_only(self) -> None:
        self.assertEqual(Loaded(self.SOURCE, self.folder).app.init_step, "initialize")
        self.write("MANIFEST.json", {"Model": {"Model-Name": "sum", "Signature": "gone.json"}})
        loaded = Loaded(self.SOURCE, self.folder)
        self.assertEqual(loaded.app.init_step, "the service's constructor, or its initialize,")
        with self.assertRaisesRegex(ValueError, "Signature file is not found: .*gone.json"):
            loaded.init()

    def test_a_service_that_needs_mxnet_raises_when_it_is_made(self) -> None:
        from mms.model_service.mxnet_model_service import MXNetBaseService

        class Cats(MXNetBaseService):
            pass

        with self.assertRaisesRegex(ImportError, "MXNetBaseService loads its model with mxnet, .* Derive Cats from"):
            Cats("m", "/m", {}, None)


if __name__ == "__main__":
    unittest.main()
