//! The server of `haulier-lab bench joiners`: the same program as a child, so that its memory and its time
//! are its own. It says where it listens; for each line that it reads it says what it has used; and it ends
//! with its standard input.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, TryRecvError};
use std::time::Duration;

use haulier::proto::client::Credentials;
use haulier::{
    Block, ConnectionConfig, Listen, Server, ServerConfig, ServerCredentials, ServerLimits,
    UnknownUplink,
};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;
use serde_json::{Map, Value, json};

use super::super::ends;
use crate::args::JoinersArgs;

/// "haulcrwd".
pub(super) const PROTOCOL_ID: u64 = 0x6861_756c_6372_7764;

/// Public: the keys of a measurement protect nothing.
const SECRET: [u8; 32] = *b"haulier bench joiners: a secret.";

/// The longest turn of the child, after which it looks for a request of its parent.
const TURN: Duration = Duration::from_millis(20);

/// Ticks of a process's time in a second, as Linux reports them to programs on every machine.
const TICKS: f64 = 100.0;

pub(super) fn secret() -> haulier::Secret {
    haulier::Secret::from_bytes(SECRET)
}

pub(super) fn credentials() -> Credentials {
    Credentials::Secret { secret: secret(), identity: None }
}

pub(super) fn connection(bytes: u64) -> ConnectionConfig {
    ConnectionConfig::default().with_max_block_bytes(bytes).with_handshake_timeout(PATIENCE)
}

/// A swarm of thousands on one core is answered later than a player is.
const PATIENCE: Duration = Duration::from_secs(60);

/// The child, until its standard input ends.
pub(super) fn serve(args: &JoinersArgs) -> Result<(), Failure> {
    // Its lines are for a program.
    let report = Report::new("haulier-lab", true, false);
    let fail = |error: std::io::Error| Failure::socket("server", &error);
    let block = Block::new(1, ends::block(args.bytes)?);
    let listen = Listen::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(fail)?;
    let listen = listen.workers(usize::from(args.workers));
    let (local, server) =
        (listen.local_addr(), listen.start(config(args).with_first_block(Some(block)))?);
    report.event("listening", json!({ "addr": local.to_string() }), "");
    let (asks, asked) = mpsc::channel();
    std::thread::spawn(move || {
        let lines = std::io::stdin().lines();
        lines.map_while(Result::ok).take_while(|_| asks.send(()).is_ok()).for_each(drop);
    });
    loop {
        interrupt::check()?;
        let _event = server.wait(TURN)?;
        match asked.try_recv() {
            Ok(()) => report.event("used", used(&server), ""),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
    }
}

/// All clients have one address, so the limits of one are those of all.
fn config(args: &JoinersArgs) -> ServerConfig {
    let clients = (args.clients + args.hostile()) as usize;
    let seats = args.seats.map_or(clients, |seats| seats as usize);
    let limits = ServerLimits::default()
        .with_connections(seats)
        .with_connections_per_prefix(clients)
        .with_handshakes_per_prefix(clients.max(64));
    let credentials = ServerCredentials::default().with_secret(secret());
    let config = ServerConfig::new(PROTOCOL_ID, credentials)
        .with_limits(limits)
        .with_connection(connection(args.bytes));
    match args.uplink {
        _ if args.find_uplink => config.with_unknown_uplink(UnknownUplink::FoundOut),
        Some(uplink) => config.with_max_uplink_bps(uplink),
        None => config,
    }
}

fn used(server: &Server) -> Value {
    let (stats, process) = (server.stats(), Process::of_this());
    let drops = server.drops();
    let drops: Map<String, Value> =
        drops.iter().map(|(why, count)| (format!("{why:?}"), count.into())).collect();
    json!({
        "cpu_s": process.cpu.map(|cpu| cpu.as_secs_f64()),
        "memory_bytes": process.memory_bytes,
        "peak_bytes": process.peak_bytes,
        "datagrams_received": stats.datagrams_received,
        "datagrams_sent": stats.datagrams_sent,
        "bytes_sent": stats.bytes_sent,
        "connections": stats.connections,
        "drops": drops,
    })
}

/// What the system says of this process, where it does.
#[derive(Default)]
struct Process {
    cpu: Option<Duration>,
    memory_bytes: Option<u64>,
    peak_bytes: Option<u64>,
}

impl Process {
    fn of_this() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let (status, stat) = (read("/proc/self/status"), read("/proc/self/stat"));
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
        };
        // Behind the name, which may have spaces, the 12th and 13th: time in the program, and in the system.
        let after_name = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let ticks: Vec<f64> =
            after_name.split_whitespace().skip(11).take(2).flat_map(str::parse).collect();
        let cpu =
            (ticks.len() == 2).then(|| Duration::from_secs_f64(ticks.iter().sum::<f64>() / TICKS));
        Self { cpu, memory_bytes: kib("VmRSS:"), peak_bytes: kib("VmHWM:") }
    }
}

/// The child, as its parent has it. Dropping it ends it.
pub(super) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    pub(super) addr: SocketAddr,
}

impl Running {
    pub(super) fn start(args: &JoinersArgs) -> Result<Self, Failure> {
        let fail = |error: std::io::Error| Failure::Io(format!("the server's process: {error}"));
        let mut command = Command::new(std::env::current_exe().map_err(fail)?);
        command.args(["bench", "joiners", "--serve"]);
        command.args(["--clients".into(), args.clients.to_string()]);
        command.args(["--bytes".into(), args.bytes.to_string()]);
        command.args(["--workers".into(), args.workers.to_string()]);
        args.attack.then(|| command.arg("--attack"));
        args.seats.map(|seats| command.args(["--seats".into(), seats.to_string()]));
        args.find_uplink.then(|| command.arg("--find-uplink"));
        args.uplink.map(|uplink| command.args(["--uplink".into(), uplink.to_string()]));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(fail)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let Some(stdout) = stdout else { return Err(no_answer()) };
        let unknown = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut running = Self { child, stdin, stdout: BufReader::new(stdout), addr: unknown };
        let addr = running.line()?["addr"].as_str().and_then(|addr| addr.parse().ok());
        running.addr = addr.ok_or_else(no_answer)?;
        Ok(running)
    }

    /// Asks the child for what it has used until now: CPU time, memory and traffic.
    pub(super) fn used(&mut self) -> Result<Value, Failure> {
        let asked = self.stdin.as_mut().map(|stdin| stdin.write_all(b"\n"));
        asked.and_then(Result::ok).ok_or_else(no_answer)?;
        self.line()
    }

    fn line(&mut self) -> Result<Value, Failure> {
        let mut line = String::new();
        self.stdout.read_line(&mut line).map_err(|_| no_answer())?;
        serde_json::from_str(&line).map_err(|_| no_answer())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stdin = None;
        let _ended_already = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn no_answer() -> Failure {
    Failure::Io("the server's process does not answer".into())
}
