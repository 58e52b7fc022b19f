//! Running the program: [`Program`] is one that runs, [`Finished`] one that has ended, [`Pair`] a
//! receiver and a sender, [`Dir`] a place for their files.

use std::io::{ErrorKind, Write as _};
use std::net::UdpSocket;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::pipe::Pipe;

/// The built program that is tested.
pub const HAULIER: &str = crate::PROGRAM;

/// When a program counts as hung. No test asks for speed: a bench over a hundred cells takes half a minute on
/// two cores, and minutes where they are busy.
pub const HUNG: Duration = Duration::from_secs(300);

/// A running program. Dropping it kills it.
pub struct Program {
    child: Child,
    what: String,
    /// Standard output carries the file, so that events are on standard error.
    prints_data: bool,
    out: Pipe,
    err: Pipe,
}

impl Program {
    /// `haulier` with these arguments and nothing on standard input.
    pub fn start(args: &[&str]) -> Self {
        Self::spawn(Command::new(HAULIER).args(args))
    }

    /// `haulier` with these arguments and an open standard input.
    pub fn start_piped(args: &[&str]) -> (Self, ChildStdin) {
        let mut program = Self::run(Command::new(HAULIER).args(args).stdin(Stdio::piped()));
        let stdin = program.child.stdin.take().unwrap();
        (program, stdin)
    }

    /// `haulier` with these arguments and `input` on standard input.
    pub fn start_with(args: &[&str], input: &[u8]) -> Self {
        let (program, mut stdin) = Self::start_piped(args);
        let input = input.to_vec();
        // A program that ends early does not read it all; that shows in its exit code.
        std::thread::spawn(move || stdin.write_all(&input));
        program
    }

    /// Any command that becomes `haulier`.
    pub fn spawn(command: &mut Command) -> Self {
        Self::run(command.stdin(Stdio::null()))
    }

    /// Any command that becomes `haulier`, with standard output to this file.
    #[cfg(target_os = "linux")]
    pub fn spawn_to(file: std::fs::File, command: &mut Command) -> Self {
        Self::run_to(file.into(), command.stdin(Stdio::null()))
    }

    fn run(command: &mut Command) -> Self {
        Self::run_to(Stdio::piped(), command)
    }

    fn run_to(stdout: Stdio, command: &mut Command) -> Self {
        let what = format!("{command:?}").replace(HAULIER, crate::NAME);
        let prints_data = what.contains(r#""-o" "-""#);
        command.stdout(stdout).stderr(Stdio::piped());
        // Another test may fork while a copy of the program is being written: until that child runs something
        // else the copy is open for writing.
        let mut spawned = command.spawn();
        while spawned.as_ref().is_err_and(|error| error.kind() == ErrorKind::ExecutableFileBusy) {
            std::thread::sleep(Duration::from_millis(10));
            spawned = command.spawn();
        }
        let mut child = spawned.unwrap();
        let out = child.stdout.take().map(Pipe::read).unwrap_or_default();
        let err = Pipe::read(child.stderr.take().unwrap());
        Self { child, what, prints_data, out, err }
    }

    /// The first event of this name, waited for.
    pub fn event(&self, name: &str) -> Value {
        self.event_where(name, |_| true)
    }

    /// The first event of this name that is as wanted, waited for.
    pub fn event_where(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let events = if self.prints_data { &self.err } else { &self.out };
        let is_wanted = |line: &str| {
            let value: Value = serde_json::from_str(line).ok()?;
            (value["event"] == name && wanted(&value)).then_some(value)
        };
        events.line(is_wanted).unwrap_or_else(|| panic!("no such {name}\n{}", self.said()))
    }

    /// What follows `start` in the first line of text that starts so, waited for.
    pub fn line(&self, start: &str) -> String {
        let text = if self.prints_data { &self.err } else { &self.out };
        let rest = text.line(|line| line.strip_prefix(start).map(str::to_owned));
        rest.unwrap_or_else(|| panic!("no line {start:?}\n{}", self.said()))
    }

    /// The first line of standard error that is as wanted, waited for.
    #[cfg(unix)]
    pub fn error_line(&self, wanted: impl Fn(&str) -> bool) -> String {
        let line = self.err.line(|line| wanted(line).then(|| line.to_owned()));
        line.unwrap_or_else(|| panic!("no such line\n{}", self.said()))
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Finished {
        let status = wait_until(|| self.child.try_wait().unwrap());
        let Some(status) = status else { panic!("hung\n{}", self.said()) };
        let (stdout, stderr) = (self.out.all(), self.err.all());
        Finished {
            code: status.code(),
            what: self.said(),
            stdout,
            stderr: String::from_utf8(stderr).unwrap(),
            prints_data: self.prints_data,
        }
    }

    /// The number of its process.
    #[cfg(target_os = "linux")]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal: "INT", "TERM", "KILL". Nothing, if it has ended: it is reaped only by
    /// [`finish`](Self::finish), so that its number is no other program's.
    #[cfg(unix)]
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(status.success(), "kill -s {name} {pid}");
    }

    /// The command and what it said, for the message of a failed test.
    fn said(&self) -> String {
        let tail = |bytes: &[u8]| {
            String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(2_000)..]).into_owned()
        };
        let (out, err) = (tail(&self.out.so_far()), tail(&self.err.so_far()));
        format!("{}\n--- standard output\n{out}\n--- standard error\n{err}\n---", self.what)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Asks until there is an answer, or the program counts as hung.
pub fn wait_until<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    loop {
        match ask() {
            None if started.elapsed() < HUNG => std::thread::sleep(Duration::from_millis(5)),
            answer => return answer,
        }
    }
}

/// A program that has ended, and what it said.
pub struct Finished {
    /// The exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub what: String,
    prints_data: bool,
}

impl Finished {
    /// Standard output as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// The JSON lines.
    pub fn events(&self) -> Vec<Value> {
        let text = if self.prints_data { &self.stderr } else { self.text() };
        let parse = |line| {
            serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{error} in {line}\n{}", self.what))
        };
        text.lines().map(parse).collect()
    }

    /// The last line, which says that all is well.
    pub fn done(&self) -> Value {
        assert_eq!(self.code, Some(0), "{}", self.what);
        let last = self.events().pop().unwrap_or_default();
        assert_eq!((&last["event"], &last["ok"]), (&"done".into(), &true.into()), "{}", self.what);
        last
    }

    /// The message of the last line, which says that this went wrong.
    pub fn error(&self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}", self.what);
        let last = self.events().pop().unwrap_or_default();
        let kinds: &[&str] = match code {
            1 => &["negative"],
            2 => &["usage", "credentials"],
            3 => &["unreachable", "no-answer", "refused", "timeout", "closed", "lost", "name"],
            4 => &["verification"],
            5 => &["io"],
            6 => &["exposed"],
            7 => &["ended"],
            8 => &["incomplete"],
            130 => &["interrupted"],
            _ => panic!("no failure has exit code {code}"),
        };
        let kind = last["kind"].as_str().unwrap_or_default();
        assert!(kinds.contains(&kind), "{}", self.what);
        let message = last["message"].as_str().unwrap_or_default().to_owned();
        let mut expected = serde_json::json!({
            "event": "error", "ok": false, "kind": kind, "exit_code": code, "message": message,
        });
        // What the other end said has a number.
        if ["refused", "closed"].contains(&kind) {
            assert!(last["code"].is_u64(), "{}", self.what);
            expected["code"] = last["code"].clone();
        }
        assert_eq!(last, expected, "{}", self.what);
        assert!(message.len() > 10, "not a sentence: {}", self.what);
        message
    }
}

impl Finished {
    /// The message of an error with this exit code and of this kind.
    pub fn error_of(&self, code: i32, kind: &str) -> String {
        let message = self.error(code);
        let last = self.events().pop().unwrap_or_default();
        assert_eq!(last["kind"], kind, "{}", self.what);
        message
    }

    /// The first event of this name.
    pub fn event(&self, name: &str) -> Value {
        let found = self.events().into_iter().find(|event| event["event"] == name);
        found.unwrap_or_else(|| panic!("no {name}\n{}", self.what))
    }
}

/// A closed port of loopback, and the socket that keeps other programs from getting it: a connected socket
/// receives only from its own peer.
pub fn closed_port(host: &str) -> (UdpSocket, String) {
    let socket = UdpSocket::bind(format!("{host}:0")).unwrap();
    socket.connect(format!("{host}:9")).unwrap();
    let addr = socket.local_addr().unwrap().to_string();
    (socket, addr)
}

/// The keys of an event, in the order of the alphabet.
pub fn keys(event: &Value) -> String {
    event.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>().join(" ")
}

/// A socket that is there and says nothing, like a firewall, and where it is.
pub fn silent() -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = socket.local_addr().unwrap().to_string();
    (socket, addr)
}

/// Runs `haulier` to its end.
pub fn haulier(args: &[&str]) -> Finished {
    Program::start(args).finish()
}

/// Runs it and looks for words, wherever the lines are broken.
pub fn assert_says(args: &[&str], words: &[&str]) {
    let run = haulier(args);
    assert_eq!(run.code, Some(0), "{}", run.what);
    assert!(run.stderr.is_empty(), "{}", run.what);
    let text = run.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {}", run.what);
    }
}

/// `recv` on loopback with these arguments, with JSON.
pub fn recv(args: &[&str]) -> Serving {
    waiting("recv", args)
}

/// A receiver, and a sender that sends to it, both with JSON.
pub struct Pair {
    pub recv: Program,
    pub send: Program,
}

impl Pair {
    /// `recv` with its arguments, and `send` with the file and its further arguments.
    pub fn start(recv_args: &[&str], file: &str, send: &[&str]) -> Self {
        let Serving { program: recv, ticket, .. } = recv(recv_args);
        let send = Program::start(&[&["send", "--json", file, &ticket], send].concat());
        Self { recv, send }
    }

    /// Both ends, `recv` first.
    pub fn finish(self) -> (Finished, Finished) {
        let send = self.send.finish();
        (self.recv.finish(), send)
    }
}

/// A directory of a test, removed with all that is in it.
pub struct Dir(TempDir);

impl Dir {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The path of `name` in it.
    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// A new file in it.
    pub fn file(&self, name: &str, content: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A new file in it that only its owner can read.
    pub fn secret(&self, name: &str, content: &[u8]) -> String {
        let path = self.file(name, content);
        self.set_mode(name, 0o600);
        path
    }

    /// Changes who can read a file in it, where files have modes.
    pub fn set_mode(&self, name: &str, mode: u32) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(self.path(name), permissions).unwrap();
        }
    }

    /// A new directory in it.
    pub fn dir(&self, name: &str) -> String {
        let path = self.path(name);
        std::fs::create_dir(&path).unwrap();
        path
    }

    /// The content of a file in it.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// The sorted names in a directory of it, except the list of fetched files; "" is the directory itself.
    pub fn names(&self, dir: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path().join(dir)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != ".fetched.haulier-journal");
        names.sort();
        names
    }
}

/// Bytes that are not alike: no part of a file can stand in for another.
pub fn data(len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(b"haulier").finalize_xof().fill(&mut bytes);
    bytes
}

/// BLAKE3 as the program prints it.
pub fn blake3_hex(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// A running `serve` or `recv`, where it is and its ticket.
pub struct Serving {
    pub program: Program,
    pub addr: String,
    /// Empty if it takes tokens only.
    pub ticket: String,
    /// Of one that gives files and has an inbox; else empty.
    pub send_ticket: String,
}

/// `serve` on loopback with these arguments, with JSON.
pub fn serve(args: &[&str]) -> Serving {
    waiting("serve", args)
}

fn waiting(command: &str, args: &[&str]) -> Serving {
    let program = Program::start(&[&[command, "--json", "--bind", "127.0.0.1:0"], args].concat());
    let listening = program.event("listening");
    let addr = listening["addr"].as_str().unwrap().to_owned();
    let ticket = listening["ticket"].as_str().unwrap_or_default().to_owned();
    let send_ticket = listening["send_ticket"].as_str().unwrap_or_default().to_owned();
    Serving { program, addr, ticket, send_ticket }
}

/// Runs `send` to its end, with JSON.
pub fn send(args: &[&str]) -> Finished {
    haulier(&[&["send", "--json"], args].concat())
}

/// Runs `fetch` to its end, with JSON.
pub fn fetch(args: &[&str]) -> Finished {
    haulier(&[&["fetch", "--json"], args].concat())
}
