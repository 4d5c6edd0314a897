"""The store in a real Redis, which a TypeScript app uses at the same time. REDIS_PORT is its port."""

import os
import time

import pytest

from potassium import RedisConfig, Store

PORT = os.environ["REDIS_PORT"]


class Complex:
    def __init__(self, a):
        self.a = a


def make(**config):
    return Store(backend="redis", config=RedisConfig(host="127.0.0.1", port=PORT, **config))


@pytest.mark.parametrize("value", ["1", True, None, ["some", "list"], {"some": {"nested": "é"}}])
def test_values_come_back(value):
    store = make()
    store.set("key", value)
    assert (store.get("key"), store.has("key"), store.delete("key"), store.get("key")) == (value, True, True, None)


def test_pickle_keeps_objects():
    store = make(encoding="pickle")
    store.set("object", Complex(a=1))
    assert store.get("object").a == 1


def test_lifetimes_are_those_of_redis():
    store = make()
    store.set("short", 1, ttl=0.05)
    client = store._backend._client
    store.set("default", 1)
    store.set("for ever", 1, ttl=None)
    assert 300_000 < client.pttl("default") <= 600_000
    assert client.pttl("for ever") == -1
    end = time.monotonic() + 60
    while store.get("short") is not None and time.monotonic() < end:
        time.sleep(0.01)
    assert store.get("short") is None


def test_a_typescript_app_and_this_one_share_values():
    store = make()
    assert store.get("from typescript") == {"list": [1, "é"], "none": None}
    store.set("from python", {"list": [1, "é"], "none": None})
    assert make(encoding="msgpack").get("bytes from typescript") == {"bytes": b"\x00\xff"}
    make(encoding="msgpack").set("bytes from python", {"bytes": b"\x00\xff"})


def test_a_url_connects_and_an_unreachable_one_raises_with_host_and_port():
    store = Store("redis", RedisConfig(url=f"redis://127.0.0.1:{PORT}/1"))
    store.set("key", 1)
    assert (store.get("key"), make(db=1).get("key")) == (1, 1)
    with pytest.raises(RuntimeError, match=f"Redis at 127.0.0.1:{PORT} refused: "):
        make(password="hunter2").get("key")
