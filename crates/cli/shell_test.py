"""What `haulier completions` and `haulier man` print, read by the shells and by what formats pages, and the
bar and the demos on a terminal. `python3 shell_test.py HAULIER HAULIER-LAB`; `cargo xtask ci` runs it."""

import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pyte

PROGRAM, LAB = map(os.path.abspath, sys.argv[1:])
MOST_SECONDS = 60.0


def run(*command, **how):
    """Standard output of a command that does well and says nothing about it."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, **how)
    assert done.returncode == 0 and not done.stderr, f"{command}: {done.returncode}\n{done.stderr}"
    return done.stdout


def completions(folder):
    """Each script is read by its shell, and completes what a person types."""
    scripts = {}
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"]:
        scripts[shell] = os.path.join(folder, f"script.{shell}")
        with open(scripts[shell], "w") as file:
            file.write(run(PROGRAM, "completions", shell))
    for shell in ["bash", "zsh", "fish"]:
        run(shell, "-n", scripts[shell])
    asked = f"source {scripts['fish']}; complete -C 'haulier token i'"
    assert run("fish", "--no-config", "-c", asked).startswith("issue"), "fish completes nothing"
    asked = f"source {scripts['fish']}; complete -C 'haulier serve --pack '"
    assert "never" in run("fish", "--no-config", "-c", asked)
    types(folder, "bash", "--rcfile", scripts["bash"], "-i")
    with open(os.path.join(folder, ".zshrc"), "w") as file:
        file.write(f"autoload -U compinit; compinit -D -u; source {scripts['zsh']}\n")
    types(folder, "zsh", "-i")
    types(folder, "elvish", "-rc", scripts["elvish"])
    print("completions: bash, zsh, fish and elvish read theirs, and complete")


def types(folder, *shell):
    """A person at a shell types what only one command, and one option, begins with, and presses the key. What
    comes while the shell changes the mode of its terminal is lost, or completes nothing: it is typed again."""
    path = os.pathsep.join([os.path.dirname(PROGRAM), os.environ["PATH"]])
    home = {"HOME": folder, "ZDOTDIR": folder, "XDG_CONFIG_HOME": folder, "XDG_STATE_HOME": folder}
    _, see, end = on_terminal(*shell, env={**os.environ, **home, "PATH": path})
    see("it is ready", typed=b"\x15echo 'it is' ready\n")
    see("haulier token issue", typed=b"\x15haulier token iss\t")
    # Elvish adds no space.
    see("haulier token issue --once-at-each", typed=b"\x15haulier token issue --once\t")
    end()


def pages(folder):
    """No page has anything to mend, but for the date that it has not."""
    run(PROGRAM, "man", "--out", folder, "--quiet")
    names = sorted(os.listdir(folder))
    assert len(names) > 10, names
    for name in names:
        path = os.path.join(folder, name)
        lint = subprocess.run(
            ["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True, timeout=MOST_SECONDS
        )
        wrong = [line for line in lint.stdout.splitlines() if "missing date" not in line]
        assert not wrong, "\n".join(wrong)
    text = run("mandoc", "-T", "ascii", os.path.join(folder, "haulier-fetch.1"))
    text = re.sub(".\b", "", text)
    for words in ["haulier-fetch - Fetch files", "EXIT STATUS", "HAULIER_TICKET", "haulier-serve(1)"]:
        assert words in text, f"{words} is not in\n{text}"
    print(f"pages: {len(names)}, nothing to mend")


def resize(terminal, screen, columns):
    screen.resize(24, columns)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def watch(terminal, stream, until, typed=None):
    """Shows what the program draws until the screen is as wanted. What is typed is typed again after 2 s, 4 s,
    8 s and so on: a slow machine has to have time for what it draws."""
    start = time.monotonic()
    again = 0.0
    while not until():
        passed = time.monotonic() - start
        assert passed < MOST_SECONDS, "never shown on\n" + "\n".join(stream.listener.display).rstrip()
        if typed and passed >= again:
            os.write(terminal, typed)
            again = 2 * again + 2
        if select.select([terminal], [], [], 0.1)[0]:
            stream.feed(os.read(terminal, 65536))


def bar(folder):
    """A fetch on a terminal that becomes narrower and wider: one line with the bar, and what was above it."""
    path = os.path.join(folder, "world")
    with open(path, "wb") as file:
        file.write(os.urandom(60_000_000))
    server = subprocess.Popen(
        [PROGRAM, "serve", "--open", "--bind", "127.0.0.1:0", "--rate", "16M", path],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    client = None
    try:
        address = re.search(r" at (\S+):", server.stderr.readline())[1]
        client, terminal = pty.fork()
        if client == 0:
            out = os.path.join(folder, "out")
            os.execv(PROGRAM, [PROGRAM, "fetch", address, "--open", "-o", out])
        screen = pyte.Screen(100, 24)
        stream = pyte.ByteStream(screen)
        resize(terminal, screen, 100)
        shown = lambda: [line for line in screen.display if line.strip()]
        with_eta = lambda: [line for line in shown() if "ETA 0:" in line]
        watch(terminal, stream, lambda: "asking" in screen.display[0])
        watch(terminal, stream, lambda: len(with_eta()) == 1 and "[=" in with_eta()[0])
        for columns in [60, 40, 24, 12, 30, 90]:
            resize(terminal, screen, columns)
            before = shown()[-1]
            watch(terminal, stream, lambda: shown()[-1] != before)
            bars = [line for line in shown() if " %" in line]
            assert len(bars) == 1 and len(shown()) == 3, f"{columns} columns:\n" + "\n".join(shown())
            assert shown()[0].startswith("asking"), shown()
        os.kill(client, signal.SIGINT)
        while True:
            try:
                if not os.read(terminal, 65536):
                    break
            except OSError:
                break
        assert os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]) == 130
        client = None
        print("bar: one line at 100, 60, 40, 24, 12, 30 and 90 columns")
    finally:
        if client:
            os.kill(client, signal.SIGKILL)
            os.waitpid(client, 0)
        server.kill()
        server.wait()


def dark(folder):
    """A path that goes dark is said on the line of the bar, in place of a rate and an end that nobody knows."""
    path = os.path.join(folder, "world")
    with open(path, "wb") as file:
        file.write(os.urandom(60_000_000))
    server = subprocess.Popen(
        [PROGRAM, "serve", "--open", "--bind", "127.0.0.1:0", "--rate", "16M", path],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )
    try:
        address = re.search(r" at (\S+):", server.stderr.readline())[1]
        out = os.path.join(folder, "out")
        _, see, end = shown_by("fetch", address, "--open", "-o", out)
        see("ETA 0:")
        server.send_signal(signal.SIGSTOP)
        see("no answer for 4 s, giving up at 60 s")
        server.send_signal(signal.SIGCONT)
        see("ETA 0:")
        end()
        print("dark: said")
    finally:
        server.kill()
        server.wait()


def shown_by(*arguments):
    """What a command of the program shows on a terminal."""
    return on_terminal(PROGRAM, *arguments, env=os.environ)


def on_terminal(*command, env):
    """A terminal of 80 columns for a command; what looks whether words are on it; and what ends it."""
    client, terminal = pty.fork()
    if client == 0:
        os.execvpe(command[0], command, {**env, "TERM": "xterm-256color"})
    screen = pyte.Screen(80, 24)
    stream = pyte.ByteStream(screen)
    resize(terminal, screen, 80)

    def see(*words, typed=None):
        watch(terminal, stream, lambda: all(word in "\n".join(screen.display) for word in words), typed)

    def end():
        os.kill(client, signal.SIGKILL)
        os.waitpid(client, 0)
        os.close(terminal)

    return terminal, see, end


def demos():
    """Both wires draw the map of their slices; slow motion is slow, and keys change it."""
    for wire, legend in [("haulier1", "▒ on its way"), ("article", "▒ sent")]:
        _, see, end = on_terminal(LAB, "demo", "--wire", wire, "--rate", "1M", env=os.environ)
        see("chunk 1 of 1   █", legend, "██████", "ETA 0:0")
        end()
    terminal, see, end = on_terminal(LAB, "demo", "--slow=50", env=os.environ)
    see("50 times slower", "the article's sender", "slow start, as TCP", "▒▒▒")
    os.write(terminal, b"-")
    see("100 times slower")
    os.write(terminal, b"q")
    see("the physical limit of this link, L, is 326 ms")
    end()
    print("demos: maps on both wires, slow motion")


def silence():
    """A server that does not answer is no blank screen."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        _, see, end = shown_by("fetch", address, "--open")
        see(f"asking {address}, for up to 10 s", f"no answer from {address} yet: 1 of 10 s")
        end()
    print("silence: counted")


with tempfile.TemporaryDirectory() as place:
    completions(place)
with tempfile.TemporaryDirectory() as place:
    pages(place)
with tempfile.TemporaryDirectory() as place:
    bar(place)
with tempfile.TemporaryDirectory() as place:
    dark(place)
demos()
silence()
