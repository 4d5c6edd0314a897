"""The store of Python apps: its checks, the backends that need no package, and those that do against stand-ins."""

import contextlib
import fcntl
import gc
import io
import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import weakref
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Dict
from unittest import mock

from potassium.store import LocalConfig, RedisConfig, S3Config, Store
from potassium.store.local import LocalBackend, folder_lock

SECRET = "a-secret-value"


class StoreTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "own" / "store.db"

    def store(self, backend: str = "local", **config: Any) -> Store:
        if backend == "local":
            config = {"path": str(self.path), **config}
        store = Store(backend=backend, config=config)
        self.addCleanup(store.close)
        return store


class CheckTest(StoreTest):
    def test_a_wrong_backend_or_config_raises_at_construction_with_the_allowed_values(self) -> None:
        rows: Any = [
            (("flop",), "must be 'memory', 'local', 'redis' or 's3', not 'flop'"),
            ((5,), "not int"),
            ((), "The config of a redis store must be a RedisConfig with host, port, username, password, db"),
            (("redis", S3Config("a", "b", "c")), "not S3Config"),
            (("redis", {"hots": SECRET}), "'hots' is not one of them"),
            (("redis", RedisConfig()), "needs host"),
            (("redis", RedisConfig("h", 0)), "port of a redis store"),
            (("redis", RedisConfig("h", db=-1)), "db of a redis store"),
            (("redis", RedisConfig("h", url="redis://h")), "both url and host"),
            (("redis", RedisConfig(url=SECRET)), "must be redis://"),
            (("redis", RedisConfig("h", encoding="xml")), "must be 'json', 'msgpack' or 'pickle', not 'xml'"),
            (("s3", S3Config("a", "", "c")), "The aws_secret_access_key of a store"),
            (("local", {"path": 5}), "The path of a store"),
        ]
        for arguments, message in rows:
            with self.assertRaises(ValueError) as raised:
                Store(*arguments)
            self.assertIn(message, str(raised.exception))
            self.assertNotIn(SECRET, str(raised.exception))

    def test_configs_are_not_shown_with_their_values(self) -> None:
        self.assertNotIn(SECRET, repr(RedisConfig("h", password=SECRET)))

    def test_keys_lifetimes_and_the_end_are_checked_on_every_call(self) -> None:
        store = self.store("memory")
        for key in ("", 5, None, "\ud800"):
            with self.assertRaises(ValueError):
                store.get(key)  # type: ignore[arg-type]
        for ttl in (0, -1, 1e11, "5", True, float("nan")):
            with self.assertRaisesRegex(ValueError, "above 0 and up to 10000000000, or None"):
                store.set("k", 1, ttl)  # type: ignore[arg-type]
        store.close()
        store.close()
        with self.assertRaisesRegex(ValueError, "The store is closed"):
            store.get("k")

    def test_a_missing_package_is_named_with_the_command_that_installs_it(self) -> None:
        with mock.patch.dict(sys.modules, {"redis": None, "boto3": None}):
            for name, config in (("redis", RedisConfig("h")), ("boto3", S3Config("a", "b", "c"))):
                with self.assertRaisesRegex(ImportError, f"needs the package {name}.*Run: pip install {name}"):
                    Store("redis" if name == "redis" else "s3", config)


class EveryBackendTest(StoreTest):
    def test_values_come_back_as_copies(self) -> None:
        for backend in ("memory", "local"):
            store = self.store(backend)
            for value in ("1", True, None, 1.5, 10**30, ["some", "list"], {"some": {"nested": "é漢🍌"}}):
                store.set("key", value)
                self.assertEqual(store.get("key"), value)
                self.assertTrue(store.has("key"))
            kept = {"a": [1]}
            store.set("key", kept)
            kept["a"].append(2)
            self.assertEqual(store.get("key"), {"a": [1]})

    def test_missing_deleted_and_expired_values_are_none(self) -> None:
        for backend in ("memory", "local"):
            store = self.store(backend)
            self.assertIsNone(store.get("key"))
            self.assertFalse(store.delete("key"))
            store.set("key", 1, ttl=None)
            self.assertTrue(store.delete("key"))
            self.assertFalse(store.has("key"))
            store.set("key", 1, ttl=100)
            later = time.time() + 101
            with mock.patch("time.time", lambda: later):
                self.assertEqual((store.get("key"), store.has("key"), store.delete("key")), (None, False, False))
            store.set("for ever", 1, None)
            with mock.patch("time.time", lambda: later + 1e9):
                self.assertEqual(store.get("for ever"), 1)

    def test_writes_remove_expired_values(self) -> None:
        for backend in ("memory", "local"):
            store = self.store(backend)
            held: Any = store._backend
            for i in range(20):
                store.set(str(i), i, ttl=1)
            later, ticks = time.time() + 2, time.monotonic() + 20
            with mock.patch("time.time", lambda: later), mock.patch("time.monotonic", lambda: ticks):
                store.set("last", 1)
            rows = "SELECT * FROM entries"
            entries = held._entries if backend == "memory" else held._run(lambda db: db.execute(rows).fetchall())
            self.assertEqual(len(entries), 1)

    def test_pickle_and_msgpack_keep_values_that_json_cannot(self) -> None:
        for encoding, value in (("pickle", {1: {2, 3}}), ("msgpack", {"bytes": b"\x00\xff"})):
            store = self.store("memory", encoding=encoding)
            store.set("key", value)
            self.assertEqual(store.get("key"), value)

    def test_no_error_holds_a_value(self) -> None:
        store = self.store("memory")
        for value in ({"a": object(), "b": SECRET}, {SECRET: {SECRET: print}}):
            with self.assertRaises(TypeError) as raised:
                store.set("key", value)
            self.assertIn("cannot be stored as json", str(raised.exception))
            self.assertNotIn(SECRET, str(raised.exception))
            self.assertIsNone(raised.exception.__cause__)
        held: Any = store._backend
        held.set("key", SECRET.encode(), None)
        with self.assertRaisesRegex(ValueError, "The stored value is not json"):
            store.get("key")


class LocalTest(StoreTest):
    def test_the_file_and_its_folder_are_their_owners_alone(self) -> None:
        self.store().set("key", 1)
        for path, mode in ((self.path.parent, 0o700), (self.path, 0o600)):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), mode)

    def test_the_file_lies_in_the_working_directory_unless_a_path_is_given(self) -> None:
        before = os.getcwd()
        os.chdir(self.folder)
        try:
            store = Store("local")
            os.chdir(before)
            store.set("key", 1)
        finally:
            os.chdir(before)
        self.assertTrue((self.folder / ".banana-store/store.sqlite3").exists())
        store.close()

    def test_every_process_of_the_host_reads_and_writes_the_same_values(self) -> None:
        self.store().set("key", "parent")
        program = (
            "import sys; from potassium import Store; store = Store('local', {'path': sys.argv[1]})\n"
            "for i in range(50): store.set(f'{sys.argv[2]} {i}', i)\n"
            "print(store.get('key'))"
        )
        children = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(self.path), str(each)], stdout=subprocess.PIPE, text=True
            )
            for each in range(3)
        ]
        self.assertEqual([child.communicate()[0] for child in children], ["parent\n"] * 3)
        self.assertEqual([self.store().get(f"{each} 49") for each in range(3)], [49] * 3)

    def test_a_forked_child_has_a_connection_of_its_own(self) -> None:
        store = self.store()
        store.set("key", "parent")

        def in_child() -> None:
            backend: Any = store._backend
            assert backend._connection is None, "that of its parent"
            store.set("child", store.get("key"))

        child = multiprocessing.get_context("fork").Process(target=in_child)
        child.start()
        child.join()
        self.assertEqual((child.exitcode, store.get("child")), (0, "parent"))

    def test_a_store_without_references_leaves_nothing_behind(self) -> None:
        with mock.patch.object(os, "register_at_fork") as registered:
            stores = [weakref.ref(self.new_backend()) for _ in range(3)]
        gc.collect()
        self.assertEqual([store() for store in stores], [None, None, None])
        registered.assert_not_called()

    def new_backend(self) -> LocalBackend:
        return LocalBackend(LocalConfig(str(self.path)))

    def test_a_child_that_is_forked_while_the_store_opens_does_not_keep_its_lock(self) -> None:
        self.path.parent.mkdir()
        lock = folder_lock(str(self.path))
        with lock:
            out, inlet = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(inlet)
                os.read(out, 1)  # until the test is over
                os._exit(0)
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.close, inlet)
        self.addCleanup(os.close, out)
        folder = os.open(str(self.path.parent), os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_values_outlive_the_store(self) -> None:
        store = self.store()
        store.set("key", 1)
        store.close()
        self.assertEqual(self.store().get("key"), 1)

    def test_a_file_of_another_user_is_not_read(self) -> None:
        self.path.parent.mkdir()
        if os.getuid() == 0:
            os.chown(self.path.parent, 65534, -1)  # files of root count as this user's own
        owner = self.path.parent.stat().st_uid
        said = (
            rf"folder \S+ belongs to another user \(uid {owner}\), and what .*own; make it yours \(chown \d+\), or give"
        )
        with mock.patch("os.getuid", return_value=os.getuid() + 1):
            with self.assertRaisesRegex(RuntimeError, said):
                self.store().get("key")

    def test_a_file_that_others_can_write_is_not_read(self) -> None:
        self.path.parent.mkdir()
        self.path.parent.chmod(0o777)
        with self.assertRaisesRegex(RuntimeError, "others can write the folder .*own, and what they put there"):
            self.store().get("key")
        self.path.parent.chmod(0o700)
        self.path.touch()
        self.path.chmod(0o666)
        with self.assertRaisesRegex(RuntimeError, "others can write the file"):
            self.store().get("key")
        self.path.unlink()
        self.path.symlink_to(self.folder / "elsewhere")
        with self.assertRaisesRegex(RuntimeError, "it is not a file"):
            self.store().get("key")

    def test_a_file_of_something_else_is_left_alone(self) -> None:
        self.path.parent.mkdir()
        self.path.write_text("the family's photographs, and more than a page of them")
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "it is a file of another kind"):
                self.store().get("key")
        self.assertEqual(list(self.path.parent.glob("store.db*")), [self.path])

    def test_a_file_that_was_cut_short_is_set_aside_and_the_store_goes_on_empty(self) -> None:
        store = self.store()
        for i in range(50):
            store.set(str(i), "x" * 1000)
        store.close()
        os.truncate(self.path, 20_000)
        found, said = self.get_aloud(self.store(), "1")
        self.assertIsNone(found)
        asides = [each.name for each in self.path.parent.glob("store.db.damaged-*")]
        self.assertEqual(len(asides), 1, asides)
        self.assertRegex(
            said, f"The local store {self.path} is damaged .* renamed to .*{asides[0]}; the store starts empty"
        )
        self.assertEqual(self.get_aloud(self.store(), "1"), (None, ""), "a new file is not set aside")

    def test_a_file_found_damaged_by_a_call_is_set_aside_for_all_workers(self) -> None:
        store, other = self.store(), self.store()
        for i in range(300):
            store.set(str(i), "x" * 1000)
        self.assertEqual(other.get("1"), "x" * 1000)
        store.close()
        other._backend._run(lambda db: db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())  # type: ignore[attr-defined]
        size = self.path.stat().st_size
        with open(self.path, "r+b") as file:
            file.seek(4096)
            file.write(os.urandom(size - 4096))
        store = self.store()
        found, said = self.get_aloud(store, "7")
        self.assertIsNone(found)
        self.assertIn("is damaged", said)
        store.set("new", 1)
        self.assertEqual(other.get("new"), 1, "it looks which file has the name now")

    def test_a_full_disk_is_reported_with_the_file(self) -> None:
        store = self.store()
        store.set("key", 1)
        limited: Any = store._backend
        limited._run(lambda db: db.execute("PRAGMA max_page_count = 10"))
        with self.assertRaisesRegex(RuntimeError, f"The local store {self.path} cannot be used: .*full"):
            store.set("large", "x" * 1_000_000)
        self.assertEqual(store.get("key"), 1)

    def get_aloud(self, store: Store, key: str) -> Any:
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            return store.get(key), said.getvalue()


class StandIn(ModuleType):
    """A package that keeps its values in a dict."""


class RedisTest(StoreTest):
    def setUp(self) -> None:
        super().setUp()
        self.asked: Any = []
        redis: Any = StandIn("redis")
        errors = {name: type(name, (Exception,), {}) for name in ("TimeoutError", "ResponseError", "ConnectionError")}
        redis.exceptions = SimpleNamespace(**errors)
        redis.Redis = mock.Mock(side_effect=lambda **given: self.client(given))
        self.redis = redis
        patch = mock.patch.dict(sys.modules, {"redis": redis})
        patch.start()
        self.addCleanup(patch.stop)

    def client(self, given: Dict[str, Any]) -> Any:
        self.values: Dict[str, bytes] = {}
        client = mock.Mock()
        client.connection_pool.connection_kwargs = given
        client.get = self.values.get
        client.set = lambda key, value, px: self.asked.append((key, value, px))
        self.made = client
        return client

    def test_it_is_set_with_its_lifetime_under_the_plain_key(self) -> None:
        store = Store("redis", RedisConfig("h", "6380", username="u", password="p", db=2))
        given = self.redis.Redis.call_args[1]
        self.assertEqual((given["host"], given["port"], given["username"], given["db"]), ("h", 6380, "u", 2))
        store.set("key", {"a": "é"}, ttl=0.0015)
        store.set("key", 1, None)
        self.assertEqual(self.asked, [("key", '{"a":"é"}'.encode(), 2), ("key", b"1", None)])

    def test_an_error_names_host_and_port_and_nothing_of_the_value(self) -> None:
        store = Store("redis", RedisConfig("h", 6380))
        errors = self.redis.exceptions
        said = f"unknown command 'X', with args beginning with: '{SECRET}'"
        rows: Any = [
            (errors.ResponseError(said), RuntimeError, "Redis at h:6380 refused: unknown command 'X'"),
            (errors.TimeoutError(), TimeoutError, "Redis at h:6380 did not answer within 5 s."),
            (errors.ConnectionError("refused"), ConnectionError, "Redis at h:6380 cannot be reached: refused"),
        ]
        for error, kind, message in rows:
            self.made.get = mock.Mock(side_effect=error)
            with self.assertRaises(kind) as raised:
                store.get("key")
            self.assertEqual(str(raised.exception), message)


class S3Test(StoreTest):
    def setUp(self) -> None:
        super().setUp()
        self.objects: Dict[str, Any] = {}
        boto3: Any = StandIn("boto3")
        boto3.client = mock.Mock(side_effect=lambda name, **_: self)
        self.boto3 = boto3
        patch = mock.patch.dict(sys.modules, {"boto3": boto3})
        patch.start()
        self.addCleanup(patch.stop)

    # The part of an S3 client that a store uses.
    def put_object(self, **given: Any) -> None:
        self.objects[given["Key"]] = given

    def get_object(self, Bucket: str, Key: str) -> Any:
        self.assertEqual(Bucket, "bucket")
        if Key not in self.objects:
            missing: Any = RuntimeError("not there")
            missing.response = {"Error": {"Code": "NoSuchKey"}}
            raise missing
        found = self.objects[Key]
        return {"Body": io.BytesIO(found["Body"]), "Metadata": found["Metadata"]}

    head_object = get_object

    def delete_object(self, Bucket: str, Key: str) -> None:
        self.objects.pop(Key, None)

    def test_objects_carry_their_expiry_and_a_missing_one_is_none(self) -> None:
        store = Store("s3", S3Config("id", SECRET, "bucket"))
        self.assertEqual(self.boto3.client.call_args[1], {"aws_access_key_id": "id", "aws_secret_access_key": SECRET})
        self.assertEqual((store.get("key"), store.has("key"), store.delete("key")), (None, False, False))
        store.set("key", [1], ttl=100)
        self.assertEqual((store.get("key"), store.has("key")), ([1], True))
        later = time.time() + 101
        with mock.patch("time.time", lambda: later):
            self.assertEqual((store.get("key"), store.has("key")), (None, False))
        store.set("key", 2, ttl=None)
        self.assertEqual((self.objects["key"]["Metadata"], store.delete("key"), store.get("key")), ({}, True, None))

    def test_other_errors_are_raised_unchanged(self) -> None:
        store = Store("s3", S3Config("id", SECRET, "bucket"))
        with mock.patch.object(self, "get_object", side_effect=PermissionError("denied")):
            with self.assertRaisesRegex(PermissionError, "denied"):
                store.get("key")


class CompanionsTest(StoreTest):
    def test_sqlite_keeps_its_other_files_for_the_owner_too(self) -> None:
        store = self.store()
        store.set("key", 1)
        modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in self.path.parent.iterdir()}
        self.assertEqual(set(modes.values()), {0o600}, modes)
        with contextlib.closing(sqlite3.connect(str(self.path))) as beside:
            self.assertEqual(beside.execute("PRAGMA journal_mode").fetchone(), ("wal",))

    def test_local_configs_may_be_objects(self) -> None:
        store = Store("local", LocalConfig(str(self.path)))
        store.set("key", 1)
        self.assertEqual(store.get("key"), 1)
        store.close()


if __name__ == "__main__":
    unittest.main()
