"""A tool that sends files to a server that collects them: logs, recordings, levels that players have made.

python send.py --into FOLDER            takes files: prints a ticket, and what comes
python send.py FILE... haulier1:...     sends them, from here or by `haulier send`
"""

import sys

import haulier
from haulier import Received


def take(folder: str) -> None:
    """Says what comes, until Ctrl-C."""
    with haulier.recv(folder) as server:
        print(server.ticket, flush=True)
        for event in server:
            match event:
                case Received.File(name=name, size_bytes=size, was_here=False):
                    print(f"{name}: {size} bytes", flush=True)
                case Received.Failed(name=name, reason=reason):
                    print(f"{name} is not here: {reason}", flush=True)


def main() -> None:
    """Takes or sends."""
    match sys.argv[1:]:
        case ["--into", folder]:
            take(folder)
        case [_, *_] as arguments if len(arguments) > 1:
            *files, ticket = arguments
            done = haulier.send(files, ticket)
            print(f"{done.files_done} files are stored there: {done.verified_bytes} bytes")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main()
    except haulier.HaulierError as error:
        sys.exit(f"{error.kind}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
