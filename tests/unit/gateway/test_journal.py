"""The writes in the journal of a master."""

from hiredis import ReplyError

from gateway.journal import done, new_key


def test_numbers_and_errors_are_remembered_as_they_were_answered() -> None:
    wrong = "WRONGTYPE Operation against a key holding the wrong kind of value"
    found = done([b"epoch", b"3", b"1", b"1 -5", b"2", f"2 {wrong}".encode()])
    assert found[1] == -5
    assert isinstance(found[2], ReplyError)
    assert str(found[2]) == wrong


def test_each_clients_journal_has_a_key_of_its_own_under_the_prefix() -> None:
    keys = {new_key("redis-gateway:team-a.") for _ in range(10)}
    assert len(keys) == 10
    assert all(key.startswith(b"redis-gateway:team-a.") for key in keys)
