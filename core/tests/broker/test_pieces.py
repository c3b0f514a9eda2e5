"""JSON in pieces: what messages keep, and that a check piece by piece finds what a check of the whole text finds."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from sideband.broker import Redaction, check_egress
from sideband.broker._values import digest_of, has_at_most, payload_of
from sideband.hooks._frozen import FrozenDict, FrozenList, freeze, same
from sideband.messages import (
    AssistantMessage,
    CarryingTuple,
    Fragment,
    JsonPieces,
    Message,
    ToolCallPart,
    ToolResultMessage,
    UserMessage,
    fragment,
    parse_message,
    to_data,
)
from sideband.ops import EgressRefused
from sideband.providers import ToolSchema

VALUE = "s3cr3t-canary-7f3a"


class Talk(BaseModel):
    model: str = "a:b"
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSchema, ...] = ()


def conversation(count):
    return tuple(UserMessage(content=f"message {number}") for number in range(count))


def array(pieces):
    return JsonPieces((Fragment(b'{"messages":['), pieces, Fragment(b"]}")))


def is_refused(redactor, content, audience=None):
    try:
        check_egress(redactor, "acme.send", audience, {"body": content})
    except EgressRefused:
        return True
    return False


def test_pieces_are_sent_joined_by_commas():
    messages = conversation(3)
    assert json.loads(bytes(array(messages)))["messages"] == [one.model_dump(mode="json") for one in messages]


@pytest.mark.parametrize("encoded", [b'"text"', b'{"a":1', b'1,"b":2}', b" {}"])
def test_a_fragment_begins_and_ends_with_structure(encoded):
    with pytest.raises(ValueError, match="begins and ends with"):
        Fragment(encoded)


@pytest.mark.parametrize("where", ["head", "piece", "message", "tail"])
def test_a_secret_in_each_part_is_refused(where):
    redactor = Redaction()
    redactor.protect(VALUE, "key")
    texts = dict.fromkeys(["head", "piece", "message", "tail"], b'"x"') | {where: json.dumps(VALUE).encode()}
    message = UserMessage(content=json.loads(texts["message"]))
    parts = (
        Fragment(b'{"a":' + texts["head"] + b',"b":['),
        (Fragment(b"[" + texts["piece"] + b"]"), message),
        Fragment(b'],"c":' + texts["tail"] + b"}"),
    )
    assert is_refused(redactor, JsonPieces(parts))


def test_pieces_are_searched_once_for_the_same_secrets(count_calls):
    redactor = Redaction()
    redactor.protect(VALUE, "key")
    messages = conversation(200)
    first = count_calls(lambda: is_refused(redactor, array(messages)))
    again = count_calls(lambda: is_refused(redactor, array(messages)))
    assert first > 400
    assert again < 60, "search only pieces that were not searched in this generation of secrets"


@pytest.mark.parametrize("kind", [tuple, CarryingTuple])
def test_a_secret_that_becomes_known_later_is_found_in_pieces_that_were_searched(kind):
    redactor = Redaction()
    redactor.protect("another-secret", "other")
    messages = kind((*conversation(3), UserMessage(content=VALUE)))
    assert not is_refused(redactor, array(messages))
    redactor.protect(VALUE, "key")
    assert is_refused(redactor, array(messages))
    assert is_refused(redactor, array(messages)), "a piece that was refused is searched again"


@pytest.mark.parametrize("kind", [tuple, CarryingTuple])
def test_what_one_host_has_searched_another_host_searches_itself(kind):
    one, other = Redaction(), Redaction()
    one.protect("another-secret", "other")
    other.protect(VALUE, "key")
    messages = kind((UserMessage(content=VALUE),))
    assert not is_refused(one, array(messages))
    assert is_refused(other, array(messages))


def test_pieces_for_a_server_are_checked_for_the_secrets_of_others():
    redactor = Redaction()
    redactor.protect(VALUE, "key", origins=["https://home.example"])
    messages = (UserMessage(content=VALUE),)
    assert not is_refused(redactor, array(messages), "https://home.example")
    assert is_refused(redactor, array(messages), "https://away.example")
    assert is_refused(redactor, array(messages))


PIECES = st.lists(st.text(st.sampled_from('ab",{}[]\\\n '), max_size=6).map(lambda text: f"[{json.dumps(text)}]"))


@given(PIECES, st.data())
def test_a_check_in_pieces_finds_what_a_check_of_the_joined_text_finds(texts, data):
    pieces = array([Fragment(text.encode()) for text in texts])
    whole = bytes(pieces).decode()
    start = data.draw(st.integers(0, len(whole) - 4))
    value = whole[start : data.draw(st.integers(start + 4, len(whole)))]
    redactor = Redaction()
    is_refused(redactor, pieces)
    redactor.protect(value, "key")
    assert is_refused(redactor, pieces) == is_refused(redactor, whole)


def test_a_message_keeps_the_fragment_of_one_form():
    message = UserMessage(content="hello")
    built = []

    def build(one):
        built.append(one)
        return Fragment(b"[%d]" % len(built))

    assert [fragment(message, form, build).encoded for form in ("a", "a", "b", "a")] == [b"[1]", b"[1]", b"[2]", b"[3]"]


def test_messages_may_share_a_fragment_that_stands_for_several_forms():
    nothing = Fragment(b"")
    one, other = UserMessage(content="one"), UserMessage(content="other")
    fragment(one, "old", lambda _: nothing)
    fragment(other, "new", lambda _: nothing)
    assert fragment(one, "new", lambda _: Fragment(b"[1]")).encoded == b"[1]"


def test_a_copy_of_a_message_begins_without_what_the_message_keeps():
    message = UserMessage(content="hello")
    digest = message.digest
    fragment(message, "form", lambda one: Fragment(b"[1]"))
    copy = message.model_copy(update={"source": "agent"})
    assert copy.digest != digest
    assert fragment(copy, "form", lambda one: Fragment(b"[2]")).encoded == b"[2]"
    assert message == UserMessage(content="hello")
    assert to_data(message) == to_data(UserMessage(content="hello"))


def test_equal_messages_have_equal_digests_whatever_the_order_of_their_arguments():
    def asks(arguments):
        return AssistantMessage(content=(ToolCallPart(id="c", name="look", arguments=arguments),))

    assert asks({"a": 1, "b": 2}).digest == asks({"b": 2, "a": 1}).digest
    assert asks({"a": 1}).digest != asks({"a": 2}).digest


@given(data=st.data())
def test_digests_of_parameters_differ_with_each_message(data):
    messages = data.draw(st.lists(st.sampled_from(conversation(3)), max_size=4).map(tuple))
    others = data.draw(st.lists(st.sampled_from(conversation(3)), max_size=4).map(tuple))
    parsed = tuple(parse_message(to_data(one)) for one in messages)
    digest = digest_of(Talk(messages=messages))
    assert digest == digest_of(Talk(messages=parsed))
    assert (digest == digest_of(Talk(messages=others))) == (messages == others)
    assert digest != digest_of(Talk(messages=messages, tools=(ToolSchema(name="look"),)))
    assert digest != digest_of(Talk(messages=messages, model="a:c"))


def test_models_that_are_sent_together_have_the_digest_of_the_same_models_one_by_one():
    messages = conversation(3)
    together = Talk.model_construct(model="a:b", messages=CarryingTuple(messages), tools=())
    assert type(together.messages) is CarryingTuple
    assert digest_of(together) == digest_of(Talk(messages=messages))
    assert digest_of(together) != digest_of(Talk(messages=messages[1:]))


class Two(BaseModel):
    one: tuple[Message, ...]
    other: tuple[Message, ...]


def test_digests_of_parameters_differ_if_a_message_is_in_another_one():
    a, b, c = conversation(3)
    assert digest_of(Two(one=(a, b), other=(c,))) != digest_of(Two(one=(a,), other=(b, c)))


def test_a_longer_conversation_costs_no_more_calls_to_digest_and_count(count_calls):
    def calls(size):
        params = Talk(messages=conversation(size))
        digest_of(params)
        return count_calls(lambda: (digest_of(params), has_at_most(10**6, {"messages": params.messages})))

    assert calls(1_000) - calls(100) <= 900, "one look-up for each message: keep digests with the messages"


class Walked(CarryingTuple):
    """Models that count how often they are walked through."""

    walks = 0

    def __iter__(self):
        self.walks += 1
        return super().__iter__()


def test_tools_that_are_sent_together_are_not_walked_through_in_each_turn():
    redactor = Redaction()
    redactor.protect(VALUE, "key")
    tools = Walked([ToolSchema(name="look"), ToolSchema(name="listen")])
    params = Talk.model_construct(messages=conversation(2), tools=tools)
    walks = []
    for _ in range(3):
        digest_of(params)
        payload_of(params)
        assert has_at_most(10**6, {"tools": tools})
        assert not is_refused(redactor, array(tools))
        walks.append(tools.walks)
    assert walks[0] == walks[2], "keep with the tuple what is made of all of its models"


ARGUMENTS = st.dictionaries(st.text(max_size=2), st.lists(st.integers() | st.none(), max_size=2), max_size=2)
MESSAGES = st.one_of(
    st.builds(lambda text: UserMessage(content=text), st.text()),
    st.builds(lambda text, source: UserMessage(content=text, source=source), st.text(), st.text()),
    st.builds(
        lambda arguments: AssistantMessage(content=(ToolCallPart(id="c", name="look", arguments=arguments),)), ARGUMENTS
    ),
    st.builds(
        lambda arguments: ToolResultMessage(call="c", tool="look", content="seen", metadata=arguments), ARGUMENTS
    ),
)


@given(st.lists(MESSAGES, max_size=4), st.booleans(), st.booleans())
def test_guards_see_what_a_conversion_of_all_parameters_gives(messages, has_tools, is_again):
    tools = {"tools": (ToolSchema(name="look", parameters={"type": "object"}),)} if has_tools else {}
    params = Talk(messages=tuple(messages), **tools)
    if is_again:
        payload_of(params)
    assert same(payload_of(params), freeze(params.model_dump(exclude_unset=True)))


class Offer(BaseModel):
    tools: tuple[ToolSchema, ...] = (ToolSchema(name="look"),)


def test_guards_do_not_see_tools_that_the_caller_did_not_pass():
    assert payload_of(Offer()) == {}
    assert payload_of(Offer(tools=(ToolSchema(name="listen"),))) == {"tools": ({"name": "listen"},)}


def kinds_of(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return {type(value)}.union(*map(kinds_of, inner))


def test_payload_of_guards_is_immutable_at_any_depth():
    call = ToolCallPart(id="c", name="look", arguments={"a": [{"b": 1}]})
    payload = payload_of(Talk(messages=(AssistantMessage(content=(call,)),), tools=(ToolSchema(name="look"),)))
    assert kinds_of(payload) == {FrozenDict, FrozenList, tuple, str, int}


def test_payload_of_a_message_is_converted_once_for_all_guards_and_turns(count_calls):
    def calls(size):
        params = Talk(messages=conversation(size))
        payload_of(params)
        return count_calls(lambda: payload_of(params))

    assert calls(1_000) - calls(100) <= 900, "one look-up for each message: keep payloads with the messages"


class Content(BaseModel):
    content: bytes | str


def test_digest_of_bytes_other_than_text_differs_from_that_of_others():
    contents = [b"\xff", b"\xfe", "_w==", "a"]
    assert len({digest_of(Content(content=one)) for one in contents}) == 4
    assert digest_of(Content(content=b"\xff")) == digest_of(Content(content=b"\xff"))
