//! The machines of both wires on sockets, each turned by whoever has it.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use haulier::ServerConfig;
use haulier::proto::client::{ClientConfig, ClientMachine};
use haulier::proto::server::ServerMachine;
use haulier::proto::{AesSupport, Platform};
use haulier::udp::{Clock, Runner, Socket, has_aes, seed};
use haulier_article::{ArticlePeer, PeerMachine};

pub(crate) type ArticleEnd = Runner<PeerMachine>;
pub(crate) type ClientEnd = Runner<ClientMachine>;
pub(crate) type ServerEnd = Runner<ServerMachine>;

/// It speaks with the remote of a connected socket, or else the first that sends a packet of its protocol.
pub(crate) fn article(socket: Socket, peer: ArticlePeer) -> ArticleEnd {
    let machine = match socket.remote() {
        Some(remote) => PeerMachine::connected(peer, remote),
        None => PeerMachine::new(peer),
    };
    Runner::new(machine, socket, Clock::start())
}

pub(crate) fn client(config: ClientConfig) -> io::Result<ClientEnd> {
    let (clock, socket) = (Clock::start(), Socket::connect(config.server)?);
    let machine = ClientMachine::new(clock.now(), config, platform()?);
    let machine = machine.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok(Runner::new(machine, socket, clock))
}

pub(crate) fn server(socket: Socket, config: ServerConfig) -> io::Result<ServerEnd> {
    haulier::proto::prepare();
    let clock = Clock::start();
    let unix_time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let machine = ServerMachine::new(clock.now(), unix_time, config, platform()?);
    let machine = machine.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    Ok(Runner::new(machine, socket, clock))
}

fn platform() -> io::Result<Platform> {
    let aes = if has_aes() { AesSupport::Hardware } else { AesSupport::Software };
    Ok(Platform::new(seed()?, aes))
}
