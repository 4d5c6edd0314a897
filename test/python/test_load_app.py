"""Execution of an app's file, the app that is found in it, and the errors of one that cannot be loaded."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import traceback
import types
import unittest

from banana_worker.load.explain_missing_app import hint_misnamed
from banana_worker.load.explain_load_error import StartFailure
from banana_worker.load.load_app import load_app
from banana_worker.load.load_module import Imported
from banana_worker.process.hint_once import write_hints_to
from banana_worker.protocol.messages import StartSpec
from banana_worker.reply.answer import reply_of


def spec_of(path):
    return StartSpec(path, "", "m", "1", 0, None, 1, 1, 1, "", 0, "", None, None)


def loaded(path):
    """The worker's view of the app, as a dict for JSON; for a process of its own."""
    os.chdir("/")
    try:
        app = load_app(spec_of(path))
    except StartFailure as error:
        return {"error": error.detail or str(error), "first": str(error), "outlook": error.outlook}
    output = app.handle("/", 1, "the ctx")
    value = reply_of(output).body.value
    return {"output": value, "options": app.description.model_options}


def loaded_by_a_new_process(path):
    """As `loaded`, in a process that has imported none of the modules that a worker imports after the app's file.
    Other tests have imported them in this process."""
    code = "import json, sys, test_load_app; print(json.dumps(test_load_app.loaded(sys.argv[1])))"
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
    command = [sys.executable, "-B", "-c", code, path]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    return dict(json.loads(done.stdout), stderr=done.stderr.decode())


POTASSIUM = "from potassium import Potassium\napp = Potassium('x')\n"


# Like the request object of a framework, outside of a request.
LAZY = """\
class Lazy:
    def refuse(*_): raise RuntimeError("outside of a request")
    __class__ = property(refuse)
    __getattr__ = __bool__ = refuse
request = Lazy()
"""


class Apps(unittest.TestCase):
    """Each app is loaded in a child of this process, as a worker loads one in its own process."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)

    def write(self, name, source):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(source if isinstance(source, bytes) else textwrap.dedent(source).encode())
        return path

    def load(self, path):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                text = json.dumps(loaded(path))
            except BaseException:
                text = json.dumps({"broken": traceback.format_exc()})
            os.write(write_end, text.encode())
            os._exit(0)
        os.close(write_end)
        with open(read_end, "rb") as said:
            found = json.loads(said.read())
        os.waitpid(child, 0)
        self.assertNotIn("broken", found)
        return found

    def output(self, source, name="app.py"):
        loaded = self.load(self.write(name, source))
        self.assertNotIn("error", loaded)
        return loaded["output"]

    def refused(self, source, name="app.py"):
        path = self.write(name, source)
        loaded = self.load(path)
        self.assertIn("error", loaded)
        return loaded["error"].replace(self.folder + os.sep, ""), loaded["outlook"]


class Execution(Apps):
    def test_the_file_finds_itself_as_python_app_py_would(self):
        self.write("sibling.py", "WHO = 'a file beside the app'")
        source = """
            import os, sys, sibling
            from .sibling import WHO

            class Net:
                pass

            def inference(model_inputs):
                import __main__
                module = sys.modules[Net.__module__]
                return [__name__, __main__.Net is Net, module is __main__, __file__ == os.path.abspath(__file__),
                        sys.argv == [__file__], sys.path[0] == os.path.dirname(__file__), os.getcwd(),
                        sibling.WHO, WHO, __main__.__spec__]
            """
        found = [True, True, True, True, True, "/", "a file beside the app", "a file beside the app", None]
        self.assertEqual(self.output(source), ["app", *found])
        self.assertEqual(self.output(source, "my-app.v2.py"), ["my-app.v2", *found])

    def test_an_app_that_is_a_link_finds_the_siblings_of_its_target(self):
        self.write("released/sibling.py", "WHO = 'a file beside the target'")
        self.write(
            "released/app.py", "import sibling\nfrom .sibling import WHO\ndef inference(x): return [sibling.WHO, WHO]"
        )
        os.symlink("released/app.py", os.path.join(self.folder, "link.py"))
        self.assertEqual(self.load(os.path.join(self.folder, "link.py"))["output"], ["a file beside the target"] * 2)

    def test_an_app_may_have_the_name_of_a_module_of_python_or_of_ours(self):
        for name in ("json", "queue", "asyncio", "types", "potassium", "mms", "banana_worker"):
            source = f"""
                import importlib
                module = importlib.import_module({name!r})
                import json, concurrent.futures, logging.handlers, multiprocessing.pool

                def inference(model_inputs):
                    return [json.dumps(model_inputs), module.__file__ != __file__, __name__ != "__main__"]
                """
            with self.subTest(name):
                self.assertEqual(self.output(source, f"{name}/{name}.py"), ["1", True, True])

    def test_pickles_of_the_main_program_load(self):
        source = """
            import pickle
            class Net:
                size = 3
            net = pickle.loads(%r)
            again = pickle.loads(pickle.dumps(Net()))
            def inference(model_inputs):
                return [net.size, again.size]
            """
        self.assertEqual(self.output(source % b"c__main__\nNet\n)\x81."), [3, 3])

    def test_processes_that_are_spawned_find_the_functions_of_the_app(self):
        source = """
            import multiprocessing

            def double(value):
                return 2 * value

            def inference(model_inputs):
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    return pool.map(double, [1, 2])

            if __name__ == "__main__":
                raise Exception("no worker and none of its processes comes here")
            """
        for name in ("app.py", "my-app.py"):
            with self.subTest(name):
                self.assertEqual(self.output(source, name), [2, 4])

    def test_the_app_that_is_served_behind_a_guard_is_chosen_among_two(self):
        source = """
            from potassium import Potassium

            app = Potassium("app")
            other = Potassium("other")
            app.handler(lambda cache, json_in: "app")
            other.handler(lambda cache, json_in: "other")

            if __name__ == "__main__":
                SERVED.serve(port=8000)
            """
        for name in ("app", "other"):
            with self.subTest(name):
                self.assertEqual(self.output(source.replace("SERVED", name)), name)
        self.assertIn("app.py:4: `app` and `other` are", self.refused(source.replace("SERVED", "another"))[0])

    def test_serve_returns_in_processes_that_the_app_has_spawned(self):
        source = """
            import multiprocessing
            from potassium import Potassium

            app = Potassium("app")
            doubled = None

            def double(value):
                return 2 * value

            @app.handler
            def handler(cache, json_in):
                return doubled

            if multiprocessing.current_process().name == "MainProcess":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    doubled = pool.map_async(double, [1, 2]).get(60)
            app.serve()
            """
        self.assertEqual(self.output(source), [2, 4])

    def test_a_file_that_changes_within_a_second_is_read_again(self):
        path = self.write("app.py", "def inference(model_inputs): return 1")
        os.utime(path, (1, 1))
        self.assertEqual(self.load(path)["output"], 1)
        self.write("app.py", "def inference(model_inputs): return 2")
        os.utime(path, (1, 1))
        self.assertEqual(self.load(path)["output"], 2)


class Loaders(Apps):
    def test_an_app_that_is_no_module_has_a_loader_by_its_extension_which_gets_the_device_and_its_threads(self):
        given = []

        def load_weights(spec):
            given.append(spec.threads)
            module = types.ModuleType("weights")
            if "empty" not in spec.app:
                module.inference = lambda model_inputs: model_inputs + 1
            return Imported(spec.app, module, None, lambda: StartFailure("no graph"))

        def load(name):
            return load_app(spec_of(self.write(name, "")), {".weights": load_weights})

        self.assertEqual(load("m.weights").handle("/", 1, None), 2)
        self.assertEqual(given, [1])
        with self.assertRaisesRegex(StartFailure, "^no graph$"):
            load("empty.weights")


class Parameters(Apps):
    def test_inference_gets_the_context_if_it_wants_one(self):
        for parameters, gets in (
            ("model_inputs", 1),
            ("model_inputs, ctx", 2),
            ("model_inputs, anything", 2),
            ("model_inputs, ctx=None", 2),
            ("model_inputs, context=None", 2),
            ("model_inputs, steps=5", 1),
            ("model_inputs, *more", 1),
            ("*all", 1),
            ("*all, **named", 1),
            ("model_inputs, *, ctx", 2),
            ("model_inputs, *, steps=5", 1),
        ):
            source = f"""
                def inference({parameters}):
                    return 2 if "the ctx" in list(locals().values()) else 1
                """
            with self.subTest(parameters):
                self.assertEqual(self.output(source), gets)

    def test_the_parameters_of_a_wrapped_function_count(self):
        source = """
            import functools

            def plain(function):
                @functools.wraps(function)
                def wrapper(*args, **kwargs):
                    return function(*args, **kwargs)
                return wrapper

            @plain
            def inference(model_inputs, ctx):
                return [model_inputs, ctx]
            """
        self.assertEqual(self.output(source), [1, "the ctx"])
        called = "class Model:\n def __call__(self, model_inputs, ctx): return [model_inputs, ctx]\ninference = Model()"
        self.assertEqual(self.output(called), [1, "the ctx"])
        self.assertEqual(self.output("inference = str"), "1")

    def test_a_decorator_that_has_parameters_of_its_own_is_called_by_them(self):
        for parameters, given in (
            ("model_inputs", "model_inputs, 'own'"),
            ("model_inputs, **more", "model_inputs, **more"),
            ("*more, **named", "*more, **named"),
        ):
            source = f"""
                import functools

                def decorated(function):
                    @functools.wraps(function)
                    def wrapper({parameters}):
                        return function({given})
                    return wrapper

                @decorated
                def inference(model_inputs, ctx):
                    return [model_inputs, ctx]
                """
            with self.subTest(parameters):
                gets = "own" if "own" in given else "the ctx"
                self.assertEqual(self.output(source), [1, gets])

    def test_a_decorator_that_passes_on_only_positions_gets_no_keyword(self):
        source = """
            import functools

            def plain(function):
                @functools.wraps(function)
                def wrapper(*args):
                    return function(*args)
                return wrapper

            @plain
            @plain
            def inference(model_inputs, *, ctx=None):
                return [model_inputs, ctx]
            """
        self.assertEqual(self.output(source), [1, None])

    def test_a_method_that_a_decorator_wraps_is_not_called_with_its_object_again(self):
        source = """
            import functools

            def plain(function):
                @functools.wraps(function)
                def wrapper(*args):
                    return function(*args)
                return wrapper

            class Model:
                @plain
                def predict(self, model_inputs):
                    return model_inputs

            inference = Model().predict
            """
        self.assertEqual(self.output(source), 1)

    def test_a_mock_may_stand_in_for_a_function_of_the_app(self):
        source = "from unittest.mock import Mock\ninit = Mock()\ninference = Mock(return_value=5)\n"
        self.assertEqual(self.output(source), 5)

    def test_a_batch_function_answers_alone(self):
        self.assertEqual(self.output("def inference_batch(inputs): return [inputs[0] + 1]"), 2)
        self.assertEqual(self.output("def inference_batch(inputs, ctxs): return [ctxs[0]]"), "the ctx")


class Config(Apps):
    def options(self, config):
        return self.load(self.write("app.py", f"config = {config}\ndef inference(x): return x"))

    def test_options_may_be_written_as_python_names_are(self):
        given = '{"run_timeout": "30s", "maxBatchDelay": "5ms", "typo": 1, "forms": True}'
        wanted = {"runTimeout": "30s", "maxBatchDelay": "5ms", "typo": 1}
        self.assertEqual(self.options(given)["options"], wanted)

    def test_a_config_of_the_apps_own_is_left_alone(self):
        for config in ('{"port": 5432, "model": "bert"}', "object()", "[1]", "{1: 2}", "__import__('json')"):
            with self.subTest(config):
                self.assertEqual(self.options(config)["options"], {})

    def test_a_value_of_a_wrong_kind_is_named_with_its_line(self):
        said = self.options('{"repeatable": "yes"}')["error"].replace(self.folder + os.sep, "")
        self.assertEqual(said, "app.py:1: `config`: repeatable must be True or False")


class Mistakes(Apps):
    def assert_said(self, source, pattern, outlook="permanent", name="app.py"):
        with self.subTest(source):
            said, found = self.refused(source, name)
            self.assertRegex(said, pattern)
            self.assertEqual(found, outlook)

    def test_syntax_errors_name_the_line(self):
        for source, pattern in (
            ("def inference(x):\n    return x +\n", r"^app\.py:2: syntax error: invalid syntax: `return x \+`"),
            ("def inference(x):\nreturn x\n", r"^app\.py:2: syntax error: (expected an )?indented block.*`return x`"),
            ("x = 1\n  y = 2\n", r"^app\.py:2: syntax error: unexpected indent: `y = 2`"),
            ("if 1:\n\ty = 2\n        z = 3\n", r"^app\.py:3: syntax error: .*(tabs|unindent)"),
            (b"x = 1\ny = '\xfc'\n", r"^app\.py:2: .*(UTF-8|utf-8)"),
            (b"# coding: klingon\n", r"^app\.py:1: .*klingon"),
            (b"x = '\x00'\n", r"^app\.py:1: .*null byte"),
        ):
            self.assert_said(source, pattern)
        self.write("helper.py", "def f(:\n")
        self.assert_said("\nimport helper\n", r"^helper\.py:1: syntax error: .*`def f\(:`")

    def test_a_missing_package_is_named_with_the_command_that_installs_it(self):
        install = "Run: %s -m pip install " % sys.executable
        for source, said in (
            ("\nimport surely_missing.part\n", 'app.py:2: cannot import "surely_missing": the package'),
            ("import surely_missing", install + "surely_missing\n"),
            ("import cv2", install + "opencv-python\n"),
            ("from PIL import Image", install + "pillow\n"),
            ("import yaml", install + "pyyaml\n"),
            ("import sklearn.svm", install + "scikit-learn\n"),
            ("import umap", install + "umap-learn\n"),
            ("import surely_missing", "The interpreter is %s (Python %d." % (sys.executable, sys.version_info[0])),
            ("import json.surely", '"json" was found ('),
            ("import json.surely", "), but it has no such module. Check the name."),
        ):
            if "surely" not in source and importlib.util.find_spec(source.split()[1].split(".")[0]):
                continue
            message, outlook = self.refused(source)
            with self.subTest(source):
                self.assertIn(said, message)
                self.assertEqual(outlook, "permanent")

    def test_a_feature_that_this_python_lacks_is_named_with_its_version(self):
        good = "\ndef inference(model_inputs): return 1\n"
        for source, since in (
            ("def load(path: int | None): pass", (3, 10)),
            ("from typing import List\ndef load(path: List[int] | None): pass", (3, 10)),
            ("names: 'str' = {} | {}", (3, 9)),
            ("def load(names: list[str]): pass", (3, 9)),
            ("match 1:\n    case 1: pass", (3, 10)),
            ("try: pass\nexcept* ValueError: pass", (3, 11)),
            ("type Name = str", (3, 12)),
            ("def first[T](values: T): pass", (3, 12)),
            ("import tomllib", (3, 11)),
        ):
            with self.subTest(source):
                if sys.version_info >= since:
                    self.assertEqual(self.output(source + good), 1)
                    continue
                said = r"needs Python 3\.%d or newer; this is 3\.%d\.\d+ \(%s\)\. Name another with --python\."
                self.assert_said(source + good, said % (since[1], sys.version_info[1], re.escape(sys.executable)))

    def test_a_package_mms_of_the_apps_own_is_named_where_ours_is_needed(self):
        self.write("mms/__init__.py", "")
        path = self.write("app.py", "\nimport mms\ndef handle(data, context): return data")
        found = loaded_by_a_new_process(path)
        message = found["error"]
        self.assertTrue(message.startswith('%s:2: the app has imported an "mms" of its own (' % path), message)
        self.assertIn("Give yours another name, or delete it", message)
        self.assertEqual(found["outlook"], "permanent")

    @unittest.skipIf("BANANA_TEST_OTHER_PYTHON" in os.environ, "starts six processes; python3 runs it")
    def test_a_package_of_the_app_that_replaces_ours_causes_one_warning(self):
        app = "\nimport %s\nimport %s\ndef inference(model_inputs): return %s.__file__"
        for name, server in (("potassium", "Potassium"), ("mms", "Multi Model Server"), ("ts", "TorchServe")):
            with self.subTest(name):
                path = self.write(server + "/app.py", app % (name, name, name))
                self.assertEqual(loaded_by_a_new_process(path)["stderr"], "")
                own = self.write("%s/%s/__init__.py" % (server, name), "")
                found = loaded_by_a_new_process(path)
                self.assertEqual(found["output"], own)
                said = '%s:2: UserWarning: "%s" is %s, in place of the package of banana-serve. ' % (path, name, own)
                said += "If that is a copy of %s, delete it: it would start a server of its own.\n" % server
                self.assertEqual(found["stderr"], said + "  import %s\n" % name)

    def test_requirements_beside_the_app_are_installed_as_a_whole_if_they_name_the_package(self):
        self.write("requirements.txt", "# for the app\nother==1\nSurely.Missing[gpu] >= 2 ; python_version > '3'\n")
        message, _ = self.refused("import surely_missing")
        self.assertIn("-m pip install -r requirements.txt\n", message)
        message, _ = self.refused("import surely_missing_too")
        self.assertIn("-m pip install surely_missing_too\n", message)

    def test_an_exception_of_the_import_is_shown_with_frames_of_the_app_only(self):
        said, outlook = self.refused(
            """
            def load():
                raise ValueError("no weights")
            try:
                load()
            except ValueError as error:
                raise RuntimeError("cannot load") from error
            """
        )
        self.assertRegex(said, r"^app\.py:7: importing the app raised:\n")
        self.assertRegex(said, r"ValueError: no weights[^$]*direct cause[^$]*RuntimeError: cannot load$")
        self.assertNotIn("banana_worker", said)
        self.assertEqual(outlook, "unknown")
        first = self.load(self.write("again.py", "raise ValueError('no weights')"))["first"]
        self.assertRegex(first, r"again\.py:1: importing the app raised: ValueError: no weights$")

    def test_errors_of_the_network_and_of_scarce_resources_are_transient(self):
        for raised in (
            "ConnectionRefusedError(111, 'refused')",
            "OSError(28, 'No space left on device')",
            "__import__('socket').gaierror(-3, 'Temporary failure in name resolution')",
            "RuntimeError('CUDA out of memory. Tried to allocate 2 GiB')",
            "MemoryError()",
        ):
            self.assert_said(f"raise {raised}", "^app.py:1: importing the app raised:", "transient")
            wrapped = f"try:\n    raise {raised}\nexcept Exception as e:\n    raise KeyError('model') from e"
            self.assert_said(wrapped, "^app.py:4: importing the app raised:", "transient")

    @unittest.skipUnless(sys.version_info >= (3, 11), "exception groups came with Python 3.11")
    def test_the_parts_of_an_exception_group_are_shown(self):
        source = "raise ExceptionGroup('two', [ValueError('one'), ConnectionResetError(104, 'reset')])"
        self.assert_said(source, r"ValueError: one[^$]*ConnectionResetError", "transient")

    def test_an_import_that_exits_is_reported_with_its_place(self):
        said = r"^app\.py:2: .*sys\.exit and said: no weights\."
        self.assert_said("import sys\nsys.exit('no weights')", said, "transient")
        self.assert_said("import argparse\nexit(3)", r"^app\.py:2: .*sys\.exit with 3\. .*`if __name__", "transient")

    def test_an_exception_whose_attributes_raise_is_reported_too(self):
        refusing = "def refuse(*_): raise KeyboardInterrupt\n"
        what = f"{refusing}class Odd:\n    __repr__ = refuse\nimport sys\nsys.exit(Odd())"
        self.assert_said(what, r"^app\.py:5: .*sys\.exit with a value that cannot be shown\.", "transient")
        names = "__class__ = __cause__ = __context__ = __traceback__ = exceptions = reason = property(refuse)"
        what = f"{refusing}class Odd(Exception):\n    __str__ = refuse\n    {names}\nraise Odd()"
        self.assert_said(
            what, r"^app\.py:5: importing the app raised:[^$]*Odd: an exception that cannot be shown$", "unknown"
        )

    def test_an_app_is_found_beside_a_value_whose_attributes_raise(self):
        app = "@app.handler('/')\ndef handle(context, request): return Response(json=5)\n"
        potassium = "from potassium import Potassium, Response\n"
        self.assertEqual(self.output(f"{LAZY}{potassium}app = Potassium('x')\n{app}"), 5)
        no = "^app.py:1: app.py has no function `inference`. It has: Lazy, request"
        self.assert_said(LAZY, f"{no}. Add `def inference")
        self.assert_said(potassium + LAZY, f"{no}. Write `app = ...`")
        self.assert_said(f"{LAZY}inference = request", "^app.py:6: `inference` is a Lazy; make it a function")

    def test_a_service_is_found_beside_a_value_whose_attributes_raise(self):
        service = "class S:\n    def handle(self, data): return data\n"
        self.assert_said(f"{LAZY}{service}", "^app.py:7: `handle` takes 2 arguments, and gets 3")

    def test_a_lazy_module_is_not_loaded_for_an_explanation(self):
        self.write("heavy.py", "raise RuntimeError('loaded')")
        lazy = """
            import importlib.util, potassium
            spec = importlib.util.find_spec("heavy")
            spec.loader = importlib.util.LazyLoader(spec.loader)
            heavy = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(heavy)
        """
        self.assert_said(lazy, "^app.py:1: app.py has no function `inference`. It has: spec. Write `app = ...`")

    def test_a_wrapper_may_pass_on_more_arguments_than_it_gets(self):
        source = """
            import functools
            def with_model(function):
                @functools.wraps(function)
                def wrapper(value):
                    return function(value, 5, 6)
                return wrapper
            @with_model
            def inference(value, model, more): return value + model + more
        """
        self.assertEqual(self.load(self.write("app.py", source))["output"], 12)

    def test_a_function_that_is_nearly_one_of_an_app_is_named_in_the_log(self):
        lines = []
        write_hints_to(lines.append)
        self.addCleanup(write_hints_to, None)
        names = ("inti", "inferense_batch", "unit", "load", "shutdwon")
        module = types.ModuleType("app")
        exec("def inference(x): return x\n" + "".join(f"def {name}(): pass\n" for name in names), vars(module))
        hint_misnamed("app.py", module)
        meant = [re.findall("`(\\w+)`", line) for line in lines]
        self.assertEqual(meant, [["inti", "init"], ["inferense_batch", "inference_batch"], ["shutdwon", "shutdown"]])

    def test_the_error_for_a_file_without_inference_lists_its_names(self):
        no = "app.py has no function `inference`."
        for source, said in (
            ("", f"app.py:1: {no} It defines nothing. Add `def inference(model_inputs): ...`."),
            ("x = 1\ndef load(): pass", f"app.py:1: {no} It has: x, load. Add `def inference"),
            ("\ndef infer(x): pass", f"app.py:2: {no} It has: infer. Rename `infer` to `inference`."),
            ("def run_batch(x): pass", "Rename `run_batch` to `inference_batch`."),
            ("def infrence(x): pass", "Did you mean `inference`? Rename `infrence` to `inference`."),
            ("\ninference = 5", "app.py:2: `inference` is an int; make it a function"),
            ("inference_batch = []", "app.py:1: `inference_batch` is a list; make it a function or remove it"),
            ("init = 1\ndef inference(x): pass", "app.py:1: `init` is an int; make it a function or remove it"),
            (
                "def inference(): pass",
                "app.py:1: `inference` takes 0 arguments, and gets 1: write `def inference(model_",
            ),
            (
                "\ndef inference(x, y, z, steps=5): pass",
                "app.py:2: `inference` needs 3 arguments, and gets 1 and a context: write `def inference(model_",
            ),
            (
                "def init(a, b): pass\ndef inference(x): pass",
                "app.py:1: `init` needs 2 arguments, and gets 0 and a context",
            ),
            (
                POTASSIUM + "@app.background('/b')\ndef b(context): pass",
                "app.py:3: `b` takes 1 argument, and gets 2: write `def b(context, request)`",
            ),
            (
                POTASSIUM + "\n@app.handler\ndef h(cache, json_in, more): pass",
                "app.py:4: `h` needs 3 arguments, and gets 2: write `def h(context, json_in)`",
            ),
            (
                "from made import create_app\ndef main(): create_app().serve()",
                f"app.py:1: {no} It has: main. Write `app = ...` at the top level of the file, such as `app = create_app()`"
                ", if it is a Potassium app, or add `def inference(model_inputs): ...`.",
            ),
            ("import made", f"app.py:1: {no} It defines nothing. Write `app = ...` at the top level"),
            (
                "from potassium import Potassium as Server\ndef app(): return Server('x')",
                "Write `app = ...` at the top",
            ),
            (
                "import potassium as p\nimport functools\nmake = functools.partial(p.Potassium, 'x')",
                "Write `app = ...` at",
            ),
            ("if 0:\n    def inference(x): pass", "app.py:2: `inference` is defined under an `if` that is false in a"),
            ("class M:\n    def inference(self, x): pass", "app.py:2: `inference` is defined inside the class M"),
        ):
            self.write("made.py", "from potassium import Potassium\ndef create_app(): return Potassium('x')\n")
            message, outlook = self.refused(source)
            with self.subTest(source):
                self.assertIn(said, message)
                self.assertEqual(outlook, "permanent")

    def test_a_service_that_cannot_be_called_is_refused(self):
        service = "\nclass S:\n    def initialize(self, context): pass\n    "
        good = "def handle(self, data, context): pass"
        for source, said in (
            (
                "\ndef handle(data): return data",
                "app.py:2: `handle` takes 1 argument, and gets 2: write `def handle(data, context)`",
            ),
            (
                "def handle(data, context, more): return data",
                "app.py:1: `handle` needs 3 arguments, and gets 2: write `def handle(data, context)`",
            ),
            (
                service + "def handle(self, data): pass",
                "app.py:4: `handle` takes 2 arguments, and gets 3: write `def handle(self, data, context)`",
            ),
            (
                service + "@staticmethod\n    def handle(data): pass",
                "app.py:4: `handle` takes 1 argument, and gets 2: write `def handle(data, context)`",
            ),
            (
                "class S:\n    def initialize(self): pass\n    " + good,
                "app.py:2: `initialize` takes 1 argument, and gets 2: write `def initialize(self, context)`",
            ),
            (
                "class S:\n    def initialize(self, context):\n        yield\n    " + good,
                "app.py:2: `initialize` is a generator because it has a `yield`, so its body would not run. Remove the",
            ),
            (
                "class S:\n    async def initialize(self, context):\n        yield\n    " + good,
                "app.py:2: `initialize` is a generator because it has a `yield`",
            ),
        ):
            message, outlook = self.refused(source)
            with self.subTest(source):
                self.assertIn(said, message)
                self.assertEqual(outlook, "permanent")

    def test_a_path_that_is_not_a_readable_file_is_reported(self):
        self.write("folder.py/app.py", "")
        self.assertIn(
            "folder.py: it is not clear which file is the handler", self.load(self.folder + "/folder.py")["error"]
        )
        self.assertIn("gone.py: no such file", self.load(self.folder + "/gone.py")["error"])


if __name__ == "__main__":
    unittest.main()
