"""A bot joins a server, takes its world, and plays: says hello, and hears a greeting.

python join.py haulier1:... [NAME]      the ticket that a server has printed
python join.py --serve                  a server to try it with: prints a ticket
"""

import sys

from haulier import Block, Client, Event, HaulierError, Server, ServerEvent


def play(ticket: str, name: str) -> None:
    """Joins, and leaves when it was greeted."""
    with Client.connect(ticket, request=f"name={name}".encode()) as client:
        client.connected(timeout_s=10)
        print(f"joined {client.server}")
        for event in client:
            match event:
                case Event.BlockProgress(received_bytes=received, length_bytes=length):
                    print(f"the world: {100 * received // length} %")
                case Event.Block(tag, data):
                    print(f"the world has {len(data)} bytes")
                    client.send_message(f"{name} is here".encode())
                case Event.Message(data=data):
                    print(f"heard: {data.decode()}")
                    break  # the end of `with` waits until all that was sent has arrived
                case Event.Closed(reason=reason, text=text):
                    print(reason or text)


def serve() -> None:
    """Sends a world of 5 MB to each player, and greets them."""
    world = Block(1, bytes(range(256)) * 20_000)
    with Server.bind("127.0.0.1:0", protocol_id=7) as server:
        print(server.ticket(), flush=True)
        for id, event in server:
            match event:
                case ServerEvent.Connecting():
                    server.send_block(id, world)
                case Event.Message(data=data):
                    print(f"{server.address_of(id)}: {data.decode()}", flush=True)
                    server.send_message(id, b"welcome")
                case Event.Closed(text=text):
                    print(f"left: {text}", flush=True)


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
