"""A tool that fetches what a `haulier serve`, or `haulier.serve`, has: with a line of progress.

python fetch.py haulier1:... FOLDER [PATTERN...]
"""

import sys
from pathlib import Path

import haulier


def show(progress: haulier.Progress) -> None:
    """One line, again and again."""
    mb = progress.verified_bytes / 1e6
    rate = progress.bytes_per_second / 1e6
    print(f"\r{mb:.1f} of {progress.wanted_bytes / 1e6:.1f} MB, {rate:.1f} MB/s ", end="", flush=True)


def main() -> None:
    """Fetches, and says what came."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    ticket, folder, *only = sys.argv[1:]
    Path(folder).mkdir(parents=True, exist_ok=True)
    try:
        done = haulier.fetch(ticket, folder, only=only or None, on_progress=show)
    except haulier.HaulierError as error:
        sys.exit(f"\n{error.kind}: {error}")
    print(f"\r{done.files} files: {done.wire_bytes} bytes came, {done.here_bytes} were here")


if __name__ == "__main__":
    main()
