"""Valid settings, the messages for others, and passwords in files that change and cannot always be read."""

from pathlib import Path

import pytest

from gateway.passwords import passwords
from gateway.settings import Address, Settings, SettingsError

SENTINELS = {"REDIS_GATEWAY_SENTINELS": "redis-0.redis:26379, [fd00::1]:26379"}


def test_addresses_are_names_or_numbers_with_a_port() -> None:
    first, second = Settings.of(SENTINELS).sentinels
    assert (first, second) == (Address("redis-0.redis", 26379), Address("fd00::1", 26379))
    assert str(second) == "[fd00::1]:26379"


def test_empty_variables_and_variables_without_the_prefix_are_ignored() -> None:
    settings = Settings.of({**SENTINELS, "REDIS_GATEWAY_REDIS": "", "REDIS_PASSWORD": "secret"})
    assert settings == Settings.of(SENTINELS)


def test_a_service_of_the_same_name_sets_nothing() -> None:
    links = {"SERVICE_HOST": "10.0.0.1", "SERVICE_PORT": "6399", "PORT": "tcp://10.0.0.1:6399", "PORT_6399_TCP": "x"}
    assert Settings.of(SENTINELS | {f"REDIS_GATEWAY_{name}": text for name, text in links.items()}) == Settings.of(
        SENTINELS
    )


@pytest.mark.parametrize(
    ("environment", "wrong"),
    [
        ({"REDIS_GATEWAY_REDIS": "redis:6379"}, "both of REDIS_GATEWAY_SENTINELS and REDIS_GATEWAY_REDIS"),
        ({"REDIS_GATEWAY_LISTEN": "6399"}, "REDIS_GATEWAY_LISTEN: '6399' is not HOST:PORT"),
        ({"REDIS_GATEWAY_LISTEN": "redis:70000"}, "a port from 1 to 65535"),
        ({"REDIS_GATEWAY_UNREPLICATED": "drop"}, "REDIS_GATEWAY_UNREPLICATED: Input should be 'hold' or 'answer'"),
        ({"REDIS_GATEWAY_WAIT_SECONDS": "5"}, "REDIS_GATEWAY_WAIT_SECONDS is 5: it has to be less than"),
        ({"REDIS_GATEWAY_TLS_KEY_FILE": "/dev/null"}, "TLS_CERT_FILE and REDIS_GATEWAY_TLS_KEY_FILE belong together"),
        ({"REDIS_GATEWAY_LISTEN_TLS_CA_FILE": "/dev/null"}, "needs REDIS_GATEWAY_LISTEN_TLS_CERT_FILE"),
        ({"REDIS_GATEWAY_REDIS_PASSWORD_FILE": "/dev/null"}, "/dev/null is empty; write the password into it"),
        ({"REDIS_GATEWAY_JOURNAL_PREFIX": "two words:"}, "REDIS_GATEWAY_JOURNAL_PREFIX: String should match pattern"),
        ({"REDIS_GATEWAY_MAX_CLIENTS": "many"}, "REDIS_GATEWAY_MAX_CLIENTS: Input should be a valid integer"),
    ],
)
def test_each_error_names_its_variable(environment: dict[str, str], wrong: str) -> None:
    with pytest.raises(SettingsError, match=wrong.replace("[", r"\[")):
        Settings.of(SENTINELS | environment)


def test_all_errors_are_reported_at_once() -> None:
    with pytest.raises(SettingsError, match=r"UNREPLICATED: .*; REDIS_GATEWAY_MAX_CLIENTS: "):
        Settings.of({**SENTINELS, "REDIS_GATEWAY_MAX_CLIENTS": "0", "REDIS_GATEWAY_UNREPLICATED": "drop"})


def test_each_line_of_a_file_is_a_password(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text("first\nsecond\n")
    assert passwords(file) == (b"first", b"second")
    assert passwords(None) == ()


def test_a_file_that_cannot_be_read_keeps_its_passwords_until_it_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "passwords"
    file.write_text("first\n")
    assert passwords(file) == (b"first",)
    file.unlink()
    assert passwords(file) == passwords(file) == (b"first",)
    assert [record.getMessage() for record in caplog.records] == [
        f"{file} cannot be read (No such file or directory): the passwords that were in it stay in use"
    ]
    file.write_text("second\n")
    assert passwords(file) == (b"second",)


def test_a_file_that_was_never_read_has_no_password(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert passwords(tmp_path / "none") == ()
    assert "there is no password" in caplog.text
