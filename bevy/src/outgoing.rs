//! What a frame sends: written as messages by the game's systems, given to haulier after them.

use bevy_ecs::entity::Entity;
use bevy_ecs::message::{Message, MessageReader, MessageWriter};
use bevy_ecs::query::With;
use bevy_ecs::system::{Query, Res};
use bytes::Bytes;
use haulier::{Order, SendError};

use crate::{Connected, HaulierClient, HaulierServer, RemoteClient};

/// To the server, after the systems of this frame: `MessageWriter<ToServer>`.
///
/// Blocks are sent by [`HaulierClient`]'s own methods, which return what tells them apart.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct ToServer(Outgoing);

impl ToServer {
    /// A time-critical packet of up to 256 KiB, sent once.
    pub fn packet(data: impl Into<Bytes>) -> Self {
        Self(Outgoing::Packet(data.into()))
    }

    /// A message of up to 64 KiB on channel 0: it arrives, once, in order.
    pub fn message(data: impl Into<Bytes>) -> Self {
        Self::message_on(0, Order::Ordered, data)
    }

    /// A message of up to 64 KiB on a channel.
    pub fn message_on(channel: u8, order: Order, data: impl Into<Bytes>) -> Self {
        Self(Outgoing::Message { channel, order, data: data.into() })
    }
}

/// To clients, after the systems of this frame: `MessageWriter<ToClients>`. The bytes are shared by all that
/// they go to.
///
/// Blocks are sent by [`HaulierServer`]'s own methods, which return what tells them apart.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct ToClients {
    to: Recipients,
    what: Outgoing,
}

/// Which clients something goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipients {
    /// Everyone who is [`Connected`].
    All,
    /// Everyone but this one.
    AllBut(Entity),
    /// This one alone.
    One(Entity),
}

impl From<Entity> for Recipients {
    fn from(client: Entity) -> Self {
        Self::One(client)
    }
}

impl ToClients {
    /// A time-critical packet of up to 256 KiB, sent once to each.
    pub fn packet(to: impl Into<Recipients>, data: impl Into<Bytes>) -> Self {
        Self { to: to.into(), what: Outgoing::Packet(data.into()) }
    }

    /// A message of up to 64 KiB on channel 0: it arrives, once, in order.
    pub fn message(to: impl Into<Recipients>, data: impl Into<Bytes>) -> Self {
        Self::message_on(to, 0, Order::Ordered, data)
    }

    /// A message of up to 64 KiB on a channel.
    pub fn message_on(
        to: impl Into<Recipients>,
        channel: u8,
        order: Order,
        data: impl Into<Bytes>,
    ) -> Self {
        Self { to: to.into(), what: Outgoing::Message { channel, order, data: data.into() } }
    }
}

/// Something that was written could not be sent: too large, no room in the queue, or no connection.
#[derive(Message, Clone, Debug, PartialEq, Eq)]
pub struct SendFailed {
    /// Which client it was for; `None` at a client.
    pub to: Option<Entity>,
    /// Why. [`SendError::kind`] says what sort it is.
    pub error: SendError,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Outgoing {
    Packet(Bytes),
    Message { channel: u8, order: Order, data: Bytes },
}

pub(crate) fn send_to_server(
    client: Option<Res<HaulierClient>>,
    mut messages: MessageReader<ToServer>,
    mut failed: MessageWriter<SendFailed>,
) {
    for ToServer(what) in messages.read() {
        let sent = client.as_deref().ok_or(SendError::NotOpen);
        let sent = sent.and_then(|client| match what.clone() {
            Outgoing::Packet(data) => client.send_packet(data).map(drop),
            Outgoing::Message { channel, order, data } => {
                client.send_message_on(channel, order, data).map(drop)
            }
        });
        if let Err(error) = sent {
            failed.write(SendFailed { to: None, error });
        }
    }
}

pub(crate) fn send_to_clients(
    server: Option<Res<HaulierServer>>,
    clients: Query<(Entity, &RemoteClient)>,
    connected: Query<(Entity, &RemoteClient), With<Connected>>,
    mut messages: MessageReader<ToClients>,
    mut failed: MessageWriter<SendFailed>,
) {
    for ToClients { to, what } in messages.read() {
        let mut send = |to: Entity, client: Option<&RemoteClient>| {
            let open = server.as_deref().zip(client).ok_or(SendError::NotOpen);
            let sent = open.and_then(|(server, client)| match what.clone() {
                Outgoing::Packet(data) => server.send_packet(client.id(), data).map(drop),
                Outgoing::Message { channel, order, data } => {
                    server.send_message_on(client.id(), channel, order, data).map(drop)
                }
            });
            if let Err(error) = sent {
                failed.write(SendFailed { to: Some(to), error });
            }
        };
        match *to {
            Recipients::One(one) => send(one, clients.get(one).ok().map(|(_, client)| client)),
            Recipients::All => connected.iter().for_each(|(to, client)| send(to, Some(client))),
            Recipients::AllBut(other) => {
                let others = connected.iter().filter(|(to, _)| *to != other);
                others.for_each(|(to, client)| send(to, Some(client)));
            }
        }
    }
}
