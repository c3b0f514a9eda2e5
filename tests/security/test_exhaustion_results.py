"""Results and messages that no line can hold: too long, too deep, too many values, not JSON, or pretending."""

import pytest
from sideband.workers import ProtocolViolation, SkillRefused

# What a line can't be.
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
    "nesting of 100,000 without an end": "raw(b'[' * 100_000 + b'\\n')",
    "nesting in the parameters of an op": """
said = '{"__type__":"dispatch","__id__":"%s","__dispatch_id__":"%s","__caps__":[],'
said += '"__dispatch__":{"op":"vault.read","params":%s}}\\n'
raw((said % (me(), next_id(), '{"a":' * 100_000 + '1' + '}' * 100_000)).encode())
""",
    "millions of values": """
raw(b'{"__type__":"result","__id__":"%s","value":[' % me().encode() + b'[],' * 5_000_000 + b'[]]}\\n')
""",
    "millions of keys": """
keys = b','.join(b'"%d":0' % number for number in range(1_000_000))
raw(b'{"__type__":"result","__id__":"%s",' % me().encode() + keys + b'}\\n')
""",
}

# Results that no line can hold.
UNSENDABLE = {
    "a set": "return {1, 2}",
    "a set within a list": "return [{'a': {1}}]",
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
    "a decimal": """
import decimal
return decimal.Decimal(1)
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

# Results that are what they are, however they pretend.
ODD = {
    "a number that prints as a message": """
class Odd(float):
    def __repr__(self):
        return '0,"__id__":"' + victim + '"'
    __str__ = __repr__
return [Odd(1), {'a': Odd(2)}]
""",
    "a text that encodes as a message": """
class Odd(str):
    def encode(self, *_):
        return b'"}\\n{}'
    __str__ = __repr__ = encode
return [Odd('a')]
""",
    "an object whose items lie": """
class Odd(dict):
    def items(self):
        return [('a', 1), ('a', 2)]
return [Odd(b=1)]
""",
    "an object whose keys lie": """
class Odd(dict):
    def keys(self):
        return ['__id__', '__error__']
    def __getitem__(self, key):
        return victim
return Odd(value=1)
""",
    "an object that grows while it is read": """
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


@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_is_too_large_for_a_message_ends_its_worker(arena, name):
    assert isinstance(arena.attacks[name].error, ProtocolViolation)
    arena.check_others(name)


@pytest.mark.parametrize("name", UNSENDABLE)
def test_a_result_that_can_not_be_sent_fails_its_call_and_nothing_else(arena, name):
    attack = arena.attacks[name]
    assert isinstance(attack.error, SkillRefused)
    assert "attack" in attack.error.message
    assert len(attack.after) == 1
    arena.check_others(name)


@pytest.mark.parametrize("name", ODD)
def test_a_result_that_pretends_to_be_something_else_is_plain_data_or_an_error(arena, name):
    attack = arena.attacks[name]
    assert attack.code in {"", "skill.refused", "worker.protocol"}
    arena.check_others(name)


def test_no_effect_was_executed_that_a_grant_does_not_cover_and_the_ledger_is_whole(arena):
    arena.check_record()
