"""The scripts that write. Each runs alone in the server, checks everything first, and only then changes something.

The server does not undo what a script has done before it failed. A script without flags is refused as a whole if the
server is out of memory, cannot write to its disk, or is a replica.
"""

from __future__ import annotations

from hashlib import sha1

from attrs import field, frozen

_HELD = "local function held_by(value) return (string.match(value, '^(.-):')) end\n"
_CHECK = """
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local time = now()
-- What a client has given up must not happen later. A time before the first one shows that the clock was set back.
local first, last = string.match(ARGV[2], '(%d+)-(%d+)')
if time < tonumber(first) or time > tonumber(last) then return {'late'} end
local ends = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not ends then return {'cut'} end
local function live()
  if tonumber(ends) < time then redis.call('ZADD', KEYS[1], 'XX', time + tonumber(ARGV[3]), ARGV[1]) end
end
"""
_TURN = """
local open = redis.call('GET', KEYS[2])
if open and open ~= ARGV[4] then
  local left = redis.call('PTTL', KEYS[2])
  -- No transaction lasts for more than an hour: the clock was set back.
  if left >= 0 and left <= 3600000 then return {'wait'} end
  redis.call('DEL', KEYS[2])
end
"""
_OWN_TURN = """
if redis.call('GET', KEYS[2]) ~= ARGV[4] then return {'lost'} end
"""
_CHANGE = """
-- The index comes first: if it has another type, these fail before they change anything.
local function put(key, data)
  if not redis.call('ZSCORE', KEYS[4], key) then redis.call('ZADD', KEYS[4], 0, key) end
  redis.call('HSET', KEYS[3], key, data)
end
local function delete(key)
  redis.call('ZREM', KEYS[4], key)
  redis.call('HDEL', KEYS[3], key)
end
local function append(stream, first, last)
  for from = first, last, 1000 do
    redis.call('RPUSH', stream, unpack(ARGV, from, math.min(from + 999, last)))
  end
end
"""
_VERSION = """
local found = redis.call('HGET', KEYS[3], ARGV[5])
local digits = '0'
if found then digits = string.match(found, '^(%d+):') end
-- Numbers are exact up to 15 digits.
if not digits or #digits > 15 then return {'damaged', 0} end
local version = tonumber(digits)
if ARGV[6] ~= '' and tonumber(ARGV[6]) ~= version then return {'conflict', version} end
"""


@frozen
class Script:
    """A script, and the name under which the server keeps it.

    Attributes:
        text: its source.
        digest: its name.
    """

    text: str
    digest: str = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "digest", sha1(self.text.encode()).hexdigest())  # noqa: S324  the server's name


def _script(*parts: str, without_memory: bool = False) -> Script:
    """Return a script. One that runs ``without_memory`` makes data smaller, or lets a host start or live."""
    return Script(("#!lua flags=allow-oom\n" if without_memory else "#!lua\n") + "".join(parts))


PUT = _script(
    _CHECK,
    _TURN,
    _CHANGE,
    _VERSION,
    """
live()
put(ARGV[5], string.format('%d', version + 1) .. ':' .. ARGV[7])
return {'ok', version + 1}
""",
)
DELETE = _script(
    _CHECK,
    _TURN,
    _CHANGE,
    _VERSION,
    """
live()
if not found then return {'ok', 0} end
delete(ARGV[5])
return {'ok', 1}
""",
    without_memory=True,
)
APPEND = _script(
    _CHECK,
    _TURN,
    _CHANGE,
    """
local length = redis.call('LLEN', KEYS[5])
live()
append(KEYS[5], 5, #ARGV)
return {'ok', length}
""",
)
DELETE_STREAM = _script(
    _CHECK,
    _TURN,
    """
live()
return {'ok', redis.call('DEL', KEYS[5])}
""",
    without_memory=True,
)
BEGIN = _script(
    _CHECK,
    _TURN,
    """
live()
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
return {'ok'}
""",
)
# Prolonged only when half of the time has passed, since each write waits for the disk.
TOUCH = _script(
    _CHECK,
    _OWN_TURN,
    """
if redis.call('PTTL', KEYS[2]) < ARGV[5] / 2 then redis.call('PEXPIRE', KEYS[2], ARGV[5]) end
return {'ok'}
""",
    without_memory=True,
)
# All that it changes was read while the transaction was open, so it has the right type.
COMMIT = _script(
    _CHECK,
    _OWN_TURN,
    _CHANGE,
    """
live()
local at = 5
while at <= #ARGV do
  local kind = ARGV[at]
  if kind == 'put' then
    put(ARGV[at + 1], ARGV[at + 2])
    at = at + 3
  elseif kind == 'delete' then
    delete(ARGV[at + 1])
    at = at + 2
  elseif kind == 'clear' then
    redis.call('DEL', KEYS[tonumber(ARGV[at + 1])])
    at = at + 2
  else
    local count = tonumber(ARGV[at + 2])
    append(KEYS[tonumber(ARGV[at + 1])], at + 3, at + 2 + count)
    at = at + 3 + count
  end
end
redis.call('DEL', KEYS[2])
return {'ok'}
""",
)
RELEASE = _script(
    """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return {'ok'}
""",
    without_memory=True,
)
# The rights are checked before, since a script that lacks one fails in the middle. It needs no memory, so that a host
# can start and delete something.
ENTER = _script(
    _HELD,
    """
for _, one in ipairs({
  {'SET', KEYS[1], '1'}, {'ZADD', KEYS[2], '0', 'a'}, {'ZREM', KEYS[2], 'a'}, {'HSET', KEYS[3], 'a', 'a'},
  {'HDEL', KEYS[3], 'a'}, {'SET', KEYS[4], 'a', 'PX', '1'}, {'PEXPIRE', KEYS[4], '1'}, {'DEL', KEYS[4]},
  {'HSET', KEYS[5], 'a', 'a'}, {'HDEL', KEYS[5], 'a'}, {'ZADD', KEYS[6], '0', 'a'}, {'ZREM', KEYS[6], 'a'},
  {'RPUSH', KEYS[7], 'a'}, {'DEL', KEYS[7]}
}) do
  if not redis.acl_check_cmd(unpack(one)) then return {'denied', one[1], one[2]} end
end
local format = redis.call('GET', KEYS[1])
if format and format ~= ARGV[3] then return {'format', format} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local locks = redis.call('HGETALL', KEYS[3])
-- Holders that ended a day ago or earlier, and kept their locks.
for _, holder in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - 86400000)) do
  for at = 1, #locks, 2 do
    if held_by(locks[at + 1]) == holder then redis.call('HDEL', KEYS[3], locks[at]) end
  end
  redis.call('ZREM', KEYS[2], holder)
end
if not format then redis.call('SET', KEYS[1], ARGV[3]) end
redis.call('ZADD', KEYS[2], now + tonumber(ARGV[2]), ARGV[1])
return {'ok'}
""",
    without_memory=True,
)
LEAVE = _script(
    _HELD,
    """
local locks = redis.call('HGETALL', KEYS[2])
for at = 1, #locks, 2 do
  if held_by(locks[at + 1]) == ARGV[1] then redis.call('HDEL', KEYS[2], locks[at]) end
end
redis.call('ZREM', KEYS[1], ARGV[1])
return {'ok'}
""",
    without_memory=True,
)
RENEW = _script(
    _CHECK,
    """
redis.call('ZADD', KEYS[1], 'XX', time + tonumber(ARGV[3]), ARGV[1])
return {'ok'}
""",
    without_memory=True,
)
# The value of a lock is `HOLDER:ATTEMPT`, since an attempt that was given up may succeed later.
LOCK = _script(
    _HELD,
    _CHECK,
    """
local held = redis.call('HGET', KEYS[2], ARGV[4])
local holder = held and held_by(held)
if held and not holder then return {'damaged', 0} end
if held and holder == ARGV[1] then
  local attempt = string.sub(held, #holder + 2)
  if not string.find(ARGV[6], ',' .. attempt .. ',', 1, true) then return {'ok', 0} end
elseif held then
  local until_ = redis.call('ZSCORE', KEYS[1], holder)
  if until_ and tonumber(until_) >= time then
    -- No holder lives for more than an hour without a sign of life: the clock was set back.
    if tonumber(until_) > time + 3600000 then redis.call('ZADD', KEYS[1], 'XX', time + tonumber(ARGV[3]), holder) end
    return {'ok', 0}
  end
  if until_ and ARGV[7] ~= '1' then return {'ok', 2} end
  if until_ then
    redis.call('ZREM', KEYS[1], holder)
    local locks = redis.call('HGETALL', KEYS[2])
    for at = 1, #locks, 2 do
      if held_by(locks[at + 1]) == holder then redis.call('HDEL', KEYS[2], locks[at]) end
    end
  end
end
live()
redis.call('HSET', KEYS[2], ARGV[4], ARGV[1] .. ':' .. ARGV[5])
return {'ok', 1}
""",
)
UNLOCK = _script(
    _CHECK,
    """
live()
if redis.call('HGET', KEYS[2], ARGV[4]) ~= ARGV[1] .. ':' .. ARGV[5] then return {'ok', 0} end
redis.call('HDEL', KEYS[2], ARGV[4])
return {'ok', 1}
""",
    without_memory=True,
)
