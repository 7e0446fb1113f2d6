# Data that workers run: no types, no paths by the book.
# mypy: ignore-errors
"""forged, broken, oversized, too deeply nested and premature answers"""

import json
import os
import sys


def _say(body, size=None):
    data = memoryview((len(body) if size is None else size).to_bytes(4, "big") + body)
    while data:
        data = data[os.write(3, data) :]


def _answer(value):
    _say(b'{"kind":"returned","shown":"","value":' + value + b"}")
    os._exit(0)


def claim_four_gigabytes(self, world):
    """misled | reader"""
    _say(b"x" * 1000, 0xFFFFFFFF)
    os._exit(0)


def claim_a_little_too_much(self, world):
    """misled | reader"""
    _say(b"x" * 1000, 1 << 30)
    os._exit(0)


def half_a_frame(self, world):
    """misled | reader"""
    _say(b"half", 256)
    os._exit(0)


def half_a_header(self, world):
    """misled | reader"""
    os.write(3, b"\0\0")
    os._exit(0)


def an_empty_frame(self, world):
    """misled | reader"""
    _say(b"")
    os._exit(0)


def answer_twice(self, world):
    """misled | reader"""
    _say(b'{"kind":"returned","value":1,"shown":"1"}')
    return 2


def what_is_no_json(self, world):
    """misled | reader"""
    _say(b"not json at all")
    os._exit(0)


def what_is_no_text(self, world):
    """misled | reader"""
    _answer(b'"\xff\xfe"')


def what_is_no_object(self, world):
    """misled | reader"""
    _say(b"[1]")
    os._exit(0)


def without_a_kind(self, world):
    """misled | reader"""
    _say(b'{"value":1}')
    os._exit(0)


def with_a_kind_that_is_none(self, world):
    """misled | reader"""
    _say(b'{"kind":"eval","value":"1"}')
    os._exit(0)


def a_lone_surrogate(self, world):
    """misled | reader"""
    _answer(b'"\\ud800"')


def a_lone_surrogate_for_a_key(self, world):
    """misled | reader"""
    _answer(b'{"\\ud800": 1}')


def what_is_no_number(self, world):
    """misled | reader"""
    _answer(b"NaN")


def without_bounds(self, world):
    """misled | reader"""
    _answer(b"[-Infinity]")


def a_number_that_overflows(self, world):
    """misled | reader"""
    _answer(b"1e999")


def nested_without_end(self, world):
    """misled | reader"""
    _answer(b"[" * 100_000 + b"]" * 100_000)


def nested_further_than_values_are(self, world):
    """apart: it is refused for what it would cost later; a host that takes it is not harmed at once"""
    _answer(b"[" * 400 + b"]" * 400)


def a_number_without_end(self, world):
    """misled | reader"""
    _answer(b"9" * 100_000)


def an_unknown_tag(self, world):
    """misled | reader"""
    _answer(b'{"$":"pickle","v":"gASVHgAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAR0cnVllIWUUpQu"}')


def a_tag_that_is_no_text(self, world):
    """misled | reader"""
    _answer(b'{"$":["set"],"v":[]}')


def a_key_that_cannot_be_one(self, world):
    """misled | reader"""
    _answer(b'{"$":"dict","v":[[[],1]]}')


def members_that_all_collide(self, world):
    """misled | reader"""
    _answer(json.dumps({"$": "set", "v": [i * (2**61 - 1) for i in range(1, 20_000)]}).encode())


def a_date_that_is_none(self, world):
    """misled | reader"""
    _answer(b'{"$":"datetime","v":"2024-99-99"}')


def a_decimal_that_takes_a_gigabyte(self, world):
    """misled | reader"""
    _answer(b'{"$":"Decimal","v":"1e999999999999999999999"}')


def confined_again(self, world):
    """misled | reader"""
    _say(b'{"kind":"ready"}')
    os._exit(0)


def a_request_for_what_is_no_name(self, world):
    """misled | reader"""
    _say(b'{"kind":"module","module":["x"]}')
    os._exit(0)


def a_request_with_arguments_that_are_none(self, world):
    """misled | reader"""
    _say(b'{"kind":"request","name":"call","arguments":7}')
    os._exit(0)


def frames_of_another_shape(self, world):
    """misled | reader"""
    _say(b'{"kind":"raised","type":"E","message":"m","frames":[[1,2,3]]}')
    os._exit(0)


def memory_that_is_less_than_none(self, world):
    """claims | reader"""
    _say(b'{"kind":"returned","value":1,"shown":"1","memory":-1}')
    os._exit(0)


def no_answer_at_all(self, world):
    """misled | reader"""
    os._exit(0)


def close_the_channel(self, world):
    """misled | reader"""
    os.close(3)


def put_another_file_in_its_place(self, world):
    """misled | reader"""
    os.dup2(os.open("/dev/null", os.O_RDWR), 3)


def patch_what_writes_the_answer(self, world):
    """misled | reader"""
    sys.modules["sandbox.inside.channel"].pack = lambda _frame: b"\xff" * 64
    return 1


def forge_ones_own_result(self, world):
    """inherent: code in a worker speaks for it: a reply is a claim about a value, and no verdict is based on it"""
    _answer(json.dumps(world["forged"]).encode())


def forge_ones_own_result_by_patching(self, world):
    """inherent: as above"""
    sys.modules["sandbox.inside.jobs"].encode = lambda _value, _simplify: world["forged"]
    return 1
