"""Results and messages that exceed a limit, are not JSON, or are hostile objects."""

import pytest
from sideband.workers import ProtocolViolation, SkillRefused

# Lines that exceed a limit.
TOO_LARGE = {
    "a line of 1 GB": """
for _ in range(1 << 14):
    raw(b'x' * (1 << 16))
""",
    "a result of 1 GB": """
raw(b'{"__type__":"result","__id__":"%s","value":"' % me().encode())
for _ in range(1 << 14):
    raw(b'x' * (1 << 16))
""",
    "nesting of 100,000": "raw(b'[' * 100_000 + b']' * 100_000 + b'\\n')",
    "nesting of 100,000 objects": "raw(b'{\"a\":' * 100_000 + b'1' + b'}' * 100_000 + b'\\n')",
    "unterminated nesting of 100,000": "raw(b'[' * 100_000 + b'\\n')",
    "nesting in the parameters of an op": """
text = '{"__type__":"dispatch","__id__":"%s","__dispatch_id__":"%s","__caps__":[],'
text += '"__dispatch__":{"op":"vault.read","params":%s}}\\n'
raw((text % (me(), next_id(), '{"a":' * 100_000 + '1' + '}' * 100_000)).encode())
""",
    "millions of values": """
raw(b'{"__type__":"result","__id__":"%s","value":[' % me().encode() + b'[],' * 5_000_000 + b'[]]}\\n')
""",
    "millions of keys": """
keys = b','.join(b'"%d":0' % number for number in range(1_000_000))
raw(b'{"__type__":"result","__id__":"%s",' % me().encode() + keys + b'}\\n')
""",
}

# Results that cannot be sent.
UNSENDABLE = {
    "a set of objects": "return {object()}",
    "a set within a list": "return [{'a': {object()}}]",
    "a cycle": """
cycle = []
cycle.append(cycle)
return cycle
""",
    "a cycle of objects": """
cycle = {}
cycle['self'] = {'again': cycle}
return {'cycle': cycle}
""",
    "not a number": "return float('nan')",
    "infinity within an object": "return {'a': float('-inf')}",
    "a lone surrogate": "return '\\ud800'",
    "a lone surrogate as a key": "return {'\\udfff': 1}",
    "an object": "return object()",
    "a function": "return lambda: None",
    "a module": "return sys",
    "a coroutine": """
async def later(): ...
coroutine = later()
try:
    return coroutine
finally:
    coroutine.close()
""",
    "a generator": "return (n for n in [1])",
    "a class": "return int",
    "an exception": "return ValueError('x')",
    "a task": "return asyncio.current_task()",
    "a complex number": "return 1j",
    "a decimal that is not a number": """
import decimal
return decimal.Decimal('nan')
""",
    "an array that converts to itself": """
class ndarray:
    size = nbytes = ndim = 0
    dtype = None
    def __getitem__(self, key): return self
ndarray.__module__ = 'numpy'
return ndarray()
""",
    "an endless sequence that claims to be short": """
import collections.abc
class Endless(collections.abc.Sequence):
    def __len__(self): return 1
    def __getitem__(self, index): return 1
return Endless()
""",
    "a dataclass that contains itself": """
import dataclasses
@dataclasses.dataclass
class Own:
    own: object = None
value = Own()
value.own = value
return value
""",
    "a key that is a tuple": "return {(1, 2): 3}",
    "a key that is bytes": "return {'a': {b'x': 1}}",
    "a reserved key": "return {'__error__': 'x'}",
    "a number of 5,000 digits": "return 10**5000",
    "nesting of 65": """
value = []
for _ in range(65): value = [value]
return value
""",
    "a list in 100,000 lists": """
value = []
for _ in range(100_000): value = [value]
return value
""",
    "17 MiB of text": "return 'x' * (17 << 20)",
    "17 MiB of bytes": "return bytes(17 << 20)",
}

# Results that are hostile subclasses of built-in types, or look like types that are converted.
ODD = {
    "a set without end": """
class Odd(set):
    def __iter__(self):
        while True:
            yield 1
return Odd()
""",
    "an array with a forged size": """
class Odd:
    size, nbytes, ndim = 0, 0, 1
    def __iter__(self):
        while True:
            yield '"__id__"'
Odd.__module__, Odd.__qualname__ = 'numpy', 'ndarray'
Odd.dtype = Odd
Odd.kind = 'O'
return Odd()
""",
    "a number that prints as a message": """
class Odd(float):
    def __repr__(self):
        return '0,"__id__":"' + victim + '"'
    __str__ = __repr__
return [Odd(1), {'a': Odd(2)}]
""",
    "a string that encodes as a message": """
class Odd(str):
    def encode(self, *_):
        return b'"}\\n{}'
    __str__ = __repr__ = encode
return [Odd('a')]
""",
    "a dict with forged items": """
class Odd(dict):
    def items(self):
        return [('a', 1), ('a', 2)]
return [Odd(b=1)]
""",
    "a dict with forged keys": """
class Odd(dict):
    def keys(self):
        return ['__id__', '__error__']
    def __getitem__(self, key):
        return victim
return Odd(value=1)
""",
    "a dict that grows during iteration": """
class Odd(dict):
    def items(self):
        while True:
            yield str(len(self)), self
            if len(self) > 100:
                return
            self[len(self)] = 1
return [Odd(a=1)]
""",
    "keys that become equal": "return {'a': {1: 'a', '1': 'b'}}",
}

HOSTILE = {**TOO_LARGE, **UNSENDABLE, **ODD}


@pytest.fixture(scope="module")
def arena(fight):
    return fight(HOSTILE)


def test_oversized_message_ends_its_worker(arena):
    assert arena.unexpected(TOO_LARGE, lambda attack: isinstance(attack.error, ProtocolViolation)) == {}


def test_result_that_cannot_be_sent_fails_only_its_call(arena):
    def is_expected(attack):
        error = attack.error
        return isinstance(error, SkillRefused) and "attack" in error.message and len(attack.after) == 1

    assert arena.unexpected(UNSENDABLE, is_expected) == {}


def test_hostile_result_is_plain_data_or_an_error(arena):
    assert arena.unexpected(ODD, lambda attack: attack.code in {"", "skill.refused", "worker.protocol"}) == {}


def test_other_calls_are_not_affected(arena):
    arena.check_others()


def test_executed_effects_are_granted_and_the_ledger_is_valid(arena):
    arena.check_record()
