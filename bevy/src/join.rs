//! The states of a client, why it has left, and the commands that join and leave.

use bevy_ecs::resource::Resource;
use bevy_ecs::system::Commands;
use bevy_ecs::world::World;
use bevy_state::state::States;
use haulier::{CloseCode, CloseReason, Connect, ConnectError, ErrorKind, NetworkError};

use crate::HaulierClient;
use crate::client::Session;

/// Where a client is. It passes through each state that it reaches, one a frame, so that `OnEnter` and
/// `OnExit` of each run.
///
/// `Idle -> Joining -> Playing -> Left -> Joining -> ...`; a join that fails goes from `Joining` to `Left`.
#[derive(States, Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HaulierState {
    /// It has joined no server yet.
    #[default]
    Idle,
    /// It asks, waits in line, or receives what the game needs: [`JoinProgress`](crate::JoinProgress).
    Joining,
    /// The connection is open and what the game needs is here:
    /// [`HaulierClientPlugin::needs`](crate::HaulierClientPlugin::needs).
    Playing,
    /// The connection has ended, or there never was one: [`LeaveReason`].
    Left,
}

/// Why the client has left. There before [`HaulierState::Left`] is entered, and until the next one is.
#[derive(Resource, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaveReason {
    /// What sort of end it is, for a program.
    pub kind: ErrorKind,
    /// The reason as a sentence, for a person.
    pub text: String,
    /// How the connection ended, with the code and words of the end that closed it. `None` if there never was
    /// a connection.
    pub close: Option<CloseReason>,
}

impl LeaveReason {
    /// The code with which it was closed, here or by the server.
    #[must_use]
    pub const fn code(&self) -> Option<CloseCode> {
        match &self.close {
            Some(CloseReason::Here(code) | CloseReason::There { code, .. }) => Some(*code),
            _ => None,
        }
    }
}

impl From<CloseReason> for LeaveReason {
    fn from(reason: CloseReason) -> Self {
        // A player that leaves by choice reads no code.
        let text = match reason {
            CloseReason::Here(CloseCode::DONE) => "you have left".to_owned(),
            _ => reason.to_string(),
        };
        Self { kind: reason.kind(), text, close: Some(reason) }
    }
}

impl From<&ConnectError> for LeaveReason {
    fn from(error: &ConnectError) -> Self {
        Self { kind: error.kind(), text: error.to_string(), close: None }
    }
}

impl From<&NetworkError> for LeaveReason {
    fn from(error: &NetworkError) -> Self {
        Self { kind: error.kind(), text: error.to_string(), close: None }
    }
}

/// Joins and leaves by [`Commands`]. On one's own: insert and remove [`HaulierClient`].
pub trait JoinCommands {
    /// Joins a server: `to` is the text of a ticket or connect token, either of these parsed, or a
    /// [`Connect`] with settings. A connection that is there is closed.
    ///
    /// It cannot fail here: whatever goes wrong, be it the text, is the [`LeaveReason`].
    fn join<T>(&mut self, to: T)
    where
        T: TryInto<Connect, Error: Into<ConnectError>>;

    /// Closes the connection with [`CloseCode::DONE`]. No effect without a connection.
    fn leave(&mut self);
}

impl JoinCommands for Commands<'_, '_> {
    fn join<T>(&mut self, to: T)
    where
        T: TryInto<Connect, Error: Into<ConnectError>>,
    {
        let to = to.try_into().map_err(Into::into);
        self.queue(move |world: &mut World| {
            world.remove_resource::<HaulierClient>();
            match to.and_then(HaulierClient::connect) {
                Ok(client) => world.insert_resource(client),
                Err(error) => world.resource_mut::<Session>().fail(&error),
            }
        });
    }

    fn leave(&mut self) {
        self.queue(|world: &mut World| {
            if let Some(client) = world.get_resource::<HaulierClient>() {
                client.close(CloseCode::DONE, "");
            }
        });
    }
}
