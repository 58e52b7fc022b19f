//! `haulier-lab bench joiners`: thousands who join one server at once, over real sockets.

mod attack;
mod outcome;
mod server;
mod simulated;
mod swarm;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use haulier::proto::client::ClientConfig;
use haulier::udp::{self, Clock, Interest, Runner, Socket};
use haulier_shell::failure::Failure;
use haulier_shell::interrupt;
use haulier_shell::report::Report;

use super::ends;
use crate::args::JoinersArgs;
use outcome::Outcome;
use server::Running;
use swarm::{Plan, Swarm, Tally};

/// The longest turn of the clients: how often progress is shown.
const TURN: Duration = Duration::from_millis(20);

/// The transfer whose rate is the unit has this many bytes at most: a second of a fast machine.
const MAX_UNIT_BYTES: u64 = 256 << 20;

/// How long attackers are there before the others.
const AHEAD: Duration = Duration::from_secs(2);

/// The time that clients with their blocks get to close their connections.
const FAREWELL: Duration = Duration::from_millis(500);

pub(super) fn run(args: &JoinersArgs, report: &Report) -> Result<(), Failure> {
    if args.serve {
        return server::serve(args);
    }
    if args.simulated {
        return simulated::run(args, report);
    }
    let bytes = (args.bytes * u64::from(args.clients)).min(MAX_UNIT_BYTES);
    let alone = JoinersArgs {
        clients: 1,
        bytes,
        seats: None,
        at_once: None,
        attack: false,
        ..args.clone()
    };
    let unit = measure(&alone, None)?;
    let crowd = measure(args, Some(report))?;
    report.finish_bar();
    outcome::conclude(args, &unit, &crowd, report)
}

/// Runs a server, its clients, and with `--attack` the attackers.
fn measure(args: &JoinersArgs, report: Option<&Report>) -> Result<Outcome, Failure> {
    let mut server = Running::start(args)?;
    if !args.attack {
        return join(args, &mut server, report);
    }
    let (stop, addr) = (&AtomicBool::new(false), server.addr);
    thread::scope(|scope| {
        let (hostile, junk) = (args.hostile(), args.junk_per_s());
        let attack = scope.spawn(move || attack::run(addr, hostile, junk, stop));
        // They are there before the others come.
        thread::sleep(AHEAD);
        let outcome = join(args, &mut server, report);
        stop.store(true, Ordering::Relaxed);
        let broke_down = |_| Err(std::io::Error::other("broke down"));
        let shots = attack.join().unwrap_or_else(broke_down);
        let shots = shots.map_err(|error| Failure::socket("attackers", &error))?;
        outcome.map(|outcome| outcome.with_shots(shots))
    })
}

fn join(
    args: &JoinersArgs,
    server: &mut Running,
    report: Option<&Report>,
) -> Result<Outcome, Failure> {
    let fail = |error: std::io::Error| Failure::socket("clients", &error);
    let block = ends::block(args.bytes)?;
    let before = server.used()?;
    let clock = Clock::start();
    let mut runners = Vec::new();
    for (plan, host) in plans(args, server, &block).into_iter().zip(1..) {
        // Elsewhere than on Linux there is one address on loopback.
        let host = if cfg!(target_os = "linux") { host } else { 1 };
        let socket = Socket::bind(([127, 0, 0, host], 0).into()).map_err(fail)?;
        runners.push(Runner::new(Swarm::new(plan, clock.now()), socket, clock));
    }
    let began = Instant::now();
    runners.iter_mut().for_each(|runner| runner.machine.set_begun(began));
    while runners.iter().any(|runner| !runner.machine.is_over()) && began.elapsed() < args.timeout {
        turn(&mut runners, TURN).map_err(fail)?;
        if let Some(report) = report {
            let done: usize = runners.iter().map(|runner| runner.machine.tally.times.len()).sum();
            report.count(done as u64, Some(args.clients.into()), "joined");
        }
    }
    let took = began.elapsed();
    let after = server.used()?;
    while began.elapsed() < took + FAREWELL {
        turn(&mut runners, TURN).map_err(fail)?;
    }
    let tallies = runners.into_iter().map(|mut runner| {
        runner.machine.give_up();
        std::mem::take(&mut runner.machine.tally)
    });
    Ok(Outcome::new(took, tallies.collect::<Vec<Tally>>(), &before, &after))
}

/// For each socket its clients.
fn plans(args: &JoinersArgs, server: &Running, block: &Bytes) -> Vec<Plan> {
    let clients = args.clients as usize;
    let at_once = args.at_once.map_or(clients, |n| n as usize).min(clients);
    let sockets = args.sockets(at_once);
    let mut config = ClientConfig::new(server.addr, server::PROTOCOL_ID, server::credentials());
    let buffer = udp::receive_buffer_bytes();
    config.connection = server::connection(args.bytes)
        .with_max_datagram_bytes(udp::max_datagram_bytes())
        .with_receive_buffer_bytes(buffer);
    let part = |of: usize, at: usize| of / sockets + usize::from(at < of % sockets);
    (0..sockets)
        .map(|at| Plan {
            config: config.clone(),
            block: block.clone(),
            clients: part(clients, at),
            at_once: part(at_once, at),
        })
        .collect()
}

/// A round of each, after a wait for anything to do.
fn turn(runners: &mut [Runner<Swarm>], max: Duration) -> std::io::Result<()> {
    if interrupt::requested() {
        return Err(std::io::ErrorKind::Interrupted.into());
    }
    let pause = runners.iter().map(|runner| runner.pause(max)).min().unwrap_or(max);
    let interests: Vec<Interest<'_>> = runners.iter().map(Runner::interest).collect();
    udp::wait(&interests, None, pause)?;
    runners.iter_mut().try_for_each(Runner::round)
}
