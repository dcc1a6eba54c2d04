"""What a killed command or a full disk may leave in the run folder."""

from pathlib import Path

import pytest

from local import pki
from local.control_plane import choose_ports
from local.rehearsal import Rehearsal

CREDENTIALS = pki.Credentials("127.0.0.1")


def test_credentials_are_there_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: Path) -> None:
        raise OSError("No space left on device")

    folder = tmp_path / "pki"
    with monkeypatch.context() as patch:
        patch.setattr(pki, "_write_service_account_key", full)
        with pytest.raises(OSError, match="No space left"):
            pki.issue(folder, CREDENTIALS)
    assert not folder.exists()
    pki.issue(folder, CREDENTIALS)
    assert [entry.name for entry in tmp_path.iterdir()] == ["pki"]
    assert folder.stat().st_mode & 0o777 == 0o700
    authority = (folder / "ca.crt").read_text()
    pki.issue(folder, CREDENTIALS)
    assert (folder / "ca.crt").read_text() == authority


def test_credentials_with_an_empty_file_are_issued_again(tmp_path: Path) -> None:
    pki.issue(tmp_path / "pki", CREDENTIALS)
    (tmp_path / "pki" / "ca.crt").write_text("")
    pki.issue(tmp_path / "pki", CREDENTIALS)
    assert "BEGIN CERTIFICATE" in (tmp_path / "pki" / "ca.crt").read_text()


@pytest.mark.parametrize("text", ["", '{"api": 2', "[]", '{"api": 20001}'])
def test_ports_that_cannot_be_read_are_chosen_again(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ports.json"
    file.write_text(text)
    ports = choose_ports(file)
    assert len(set(vars(ports).values())) == 5
    assert choose_ports(file) == ports


def test_a_kind_of_nodes_that_cannot_be_read_is_the_default(tmp_path: Path) -> None:
    (tmp_path / "nodes").write_text("")
    assert Rehearsal(tmp_path).kind == "simulated"
    assert Rehearsal(tmp_path, "real").kind == "real"
