"""Connect tokens: who has one of a server's key joins, once, and anybody else hears why not."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Iterator, Tuple, Union

import pytest

import haulier
from conftest import LIMIT_S, PROTOCOL_ID, Host
from haulier import Client, ConnectToken, Server, Ticket, TokenKey

FILES_PROTOCOL_ID = 0x6861_756C_6669_6C65
"""That of everybody who serves files."""

KEY = TokenKey(5, haulier.random_secret())

LONG_AGO_UNIX = 1_000_000_000

Served = Tuple[haulier.FileServer, Path]


@pytest.fixture
def players() -> Iterator[Host]:
    """A server that accepts only tokens."""
    host = Host(Server.bind("127.0.0.1:0", PROTOCOL_ID, token_keys=[KEY], earlier_tokens=True))
    yield host
    host.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Files for who has a token, and where to put them."""
    world = tmp_path / "world.bin"
    world.write_bytes(os.urandom(300_000))
    (tmp_path / "into").mkdir()
    with haulier.serve([world], token_keys=[KEY]) as server:
        yield server, tmp_path / "into"


def test_a_player_joins_with_the_name_in_its_token(players: Host) -> None:
    address = players.server.local_addr
    token = haulier.issue_token(KEY, PROTOCOL_ID, [address], client_id=42, user_data=b"alice")
    assert token.servers == [address] and str(token).startswith("haulier-token1:")
    assert ConnectToken.parse(str(token)).expiry_unix == token.expiry_unix
    with Client.connect(str(token)) as client:
        client.connected(LIMIT_S)
        client.finish(LIMIT_S)
    players.close()  # its thread may be behind: now it has seen all
    [claims] = players.claims
    assert claims is not None and (claims.client_id, claims.user_data) == (42, b"alice")
    assert claims.servers == [address] and claims.expiry_unix - claims.issued_unix == 60


def refused(players: Host, token: ConnectToken) -> haulier.RefusedError:
    """Why it is not let in."""
    client = Client.connect(token, servers=[players.server.local_addr])
    with pytest.raises(haulier.RefusedError) as error:
        client.connected(LIMIT_S)
    assert error.value.kind == "refused" and isinstance(error.value, ConnectionError)
    return error.value


def test_a_token_is_for_one_join(players: Host) -> None:
    token = haulier.issue_token(KEY, PROTOCOL_ID, [players.server.local_addr])
    with Client.connect(token) as client:
        client.connected(LIMIT_S)
    assert refused(players, token).name == "token_used"


def test_a_token_that_has_expired(players: Host) -> None:
    address = players.server.local_addr
    token = haulier.issue_token(KEY, PROTOCOL_ID, [address], issued_unix=LONG_AGO_UNIX, lifetime_s=9)
    assert token.expiry_unix == LONG_AGO_UNIX + 9
    assert refused(players, token).name == "token_expired"


@pytest.mark.parametrize("accepted", [True, False])
def test_a_token_from_before_the_start(accepted: bool) -> None:
    """An earlier run of the server may have seen it."""
    key = TokenKey(6, haulier.random_secret())
    host = Host(Server.bind("127.0.0.1:0", PROTOCOL_ID, token_keys=[key], earlier_tokens=accepted))
    before = int(time.time()) - 10
    token = haulier.issue_token(key, PROTOCOL_ID, [host.server.local_addr], issued_unix=before, lifetime_s=600)
    if accepted:
        with Client.connect(token) as client:
            client.connected(LIMIT_S)
    else:
        assert refused(host, token).name == "token_used"
    host.close()


def test_a_token_of_a_foreign_key(players: Host) -> None:
    foreign = TokenKey(KEY.id, haulier.random_secret())
    token = haulier.issue_token(foreign, PROTOCOL_ID, [players.server.local_addr])
    assert refused(players, token).name == "key"


def test_a_token_for_another_server(players: Host) -> None:
    token = haulier.issue_token(KEY, PROTOCOL_ID, ["127.0.0.1:9"])
    assert refused(players, token).name == "wrong_server"


def test_without_a_token(players: Host) -> None:
    with pytest.raises(haulier.UsageError, match="only tokens"):
        players.server.ticket()
    client = Client.connect(players.server.local_addr, protocol_id=PROTOCOL_ID, secret=bytes(32))
    with pytest.raises(haulier.RefusedError) as error:
        client.connected(LIMIT_S)
    assert error.value.name == "key" and players.requests == []


def test_a_text_that_is_no_token() -> None:
    with pytest.raises(haulier.CredentialsError) as error:
        Client.connect("haulier-token1:nonsense")
    assert error.value.kind == "credentials"


def test_files_for_who_has_a_token(served: Served) -> None:
    server, into = served
    token = haulier.issue_token(KEY, FILES_PROTOCOL_ID, [server.local_addr])
    assert haulier.fetch(str(token), into).files_done == 1
    with pytest.raises(haulier.RefusedError) as error:
        haulier.fetch(token, into)
    assert error.value.name == "token_used"


def not_fetched(served: Served, to: Union[Ticket, ConnectToken]) -> haulier.RefusedError:
    """Why it gets no files."""
    with pytest.raises(haulier.RefusedError) as error:
        haulier.fetch(to, served[1])
    assert list(served[1].iterdir()) == []
    return error.value


def test_files_for_nobody_without_a_token(served: Served) -> None:
    address = served[0].local_addr
    with pytest.raises(haulier.UsageError, match="only tokens"):
        served[0].ticket
    expired = haulier.issue_token(KEY, FILES_PROTOCOL_ID, [address], issued_unix=LONG_AGO_UNIX)
    assert not_fetched(served, expired).name == "token_expired"
    foreign = haulier.issue_token(TokenKey(5, bytes(32)), FILES_PROTOCOL_ID, [address])
    assert not_fetched(served, foreign).name == "key"
    # The nearest to no token at all: a ticket, of a server that is somewhere else.
    with Server.bind("127.0.0.1:0", FILES_PROTOCOL_ID) as other:
        assert not_fetched(served, other.ticket([address])).name == "key"
