"""The chat at a terminal: what is typed, shown, asked, interrupted, and what stays behind."""


def test_a_message_is_answered_and_the_next_one_continues_the_conversation(terminal, turns):
    chat = terminal("chat", *turns("Hello there.", "Goodbye then."))
    chat.wait_for("[scripted:test", "\n>")
    chat.say("hello")
    chat.wait_for("> hello", "Hello there.")
    chat.say("goodbye")
    chat.wait_for("Goodbye then.")
    chat.type("\x04")
    assert chat.wait() == 0
    assert chat.is_restored()
