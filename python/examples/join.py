"""A bot joins a server, takes its world, and plays: says hello, and hears a greeting.

python join.py haulier1:... [NAME]      the ticket that a server has printed
python join.py --serve                  a server to try it with: prints a ticket
"""

import sys

from haulier import (
    AnyServerEvent,
    Block,
    Client,
    CloseCode,
    ConnectionId,
    Event,
    HaulierError,
    Server,
)


def play(ticket: str, name: str) -> None:
    """Joins, and leaves when it was greeted."""
    with Client.connect(ticket, request=f"name={name}".encode()) as client:
        client.connected(timeout_s=10)
        print(f"joined {client.server}")
        tenths = -1
        for event in client:
            match event:
                case Event.BlockProgress(received_bytes=received, length_bytes=length):
                    # Many come: a line for each tenth. All of it is here with the block alone.
                    if received < length and 10 * received // length > tenths:
                        tenths = 10 * received // length
                        print(f"the world: {10 * tenths} %")
                case Event.Block(tag, data):
                    print(f"the world: 100 %, {len(data)} bytes")
                    client.send_message(f"{name} is here".encode())
                case Event.Message(data=data):
                    print(f"heard: {data.decode()}")
                    break  # the end of `with` waits until all that was sent has arrived
                case Event.Closed(reason=reason, text=text):
                    print(reason or text)


def serve() -> None:
    """Sends a world of 5 MB to each player, and greets them."""
    world = Block(1, bytes(range(256)) * 20_000)
    # It goes with the answer to each request, before this program hears of it.
    with Server.bind("127.0.0.1:0", protocol_id=7, first_block=world) as server:
        print(server.ticket(), flush=True)
        for id, event in server:
            try:
                answer(server, id, event)
            except HaulierError as error:
                # An error of one player that has just left: the others play on.
                server.close(id, CloseCode.FIRST_OF_APPLICATION, f"no welcome: {error}")


def answer(server: Server, id: ConnectionId, event: AnyServerEvent) -> None:
    """What a player hears."""
    match event:
        case Event.Message(data=data):
            print(f"{server.address_of(id)}: {data.decode()}", flush=True)
            server.send_message(id, b"welcome")
        case Event.Closed(code=CloseCode.DONE):
            print("a player has left", flush=True)
        case Event.Closed(text=text):
            print(f"a player is gone: {text}", flush=True)


if __name__ == "__main__":
    try:
        if sys.argv[1:] == ["--serve"]:
            serve()
        elif len(sys.argv) in (2, 3):
            play(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "a bot")
        else:
            sys.exit(__doc__)
    except HaulierError as error:
        sys.exit(f"{error.kind}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
