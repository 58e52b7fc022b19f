//! The settings of a connection, by the names that a page has for them (`haulier.d.ts`).

use std::time::Duration;

use haulier_proto::connection::{ConnectionConfig, Delivery, ErrorKind, Urgency};
use js_sys::Error;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::error;

/// What [`Player::new`](crate::Player::new) takes.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Settings {
    pub(crate) connection: ConnectionConfig,
}

#[wasm_bindgen]
impl Settings {
    /// The default settings.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the setting of this name to a number: bytes, bit/s or milliseconds.
    ///
    /// # Errors
    /// An `Error` of kind `usage` for another name, and for a number that is negative or NaN.
    pub fn set_number(&mut self, name: &str, value: f64) -> Result<(), Error> {
        if value.is_nan() || value < 0.0 {
            return Err(usage(&format!("`{name}` is not {value}")));
        }
        // Infinity is the highest that there is.
        let (whole, time) = (value as u64, Duration::from_millis(value as u32 as u64));
        let config = &mut self.connection;
        match name {
            "maxRateBps" => config.max_rate_bps = whole,
            "maxBlockBytes" => config.max_block_bytes = whole,
            "maxUnreadBlockBytes" => config.max_unread_block_bytes = whole,
            "maxQueuedMessageBytes" => config.max_queued_message_bytes = value as u32,
            "idleTimeoutMs" => config.idle_timeout = time,
            "handshakeTimeoutMs" => config.handshake_timeout = time,
            _ => return Err(usage(&format!("there is no setting `{name}`"))),
        }
        Ok(())
    }

    /// Sets how received blocks are handed out.
    ///
    /// # Errors
    /// An `Error` of kind `usage` for another word.
    pub fn set_delivery(&mut self, word: &str) -> Result<(), Error> {
        self.connection.delivery = match word {
            "blocks" => Delivery::Blocks,
            "chunks" => Delivery::Chunks,
            "in-order" => Delivery::InOrder,
            _ => {
                return Err(usage(&format!(
                    "`delivery` is `blocks`, `chunks` or `in-order`, not `{word}`"
                )));
            }
        };
        Ok(())
    }

    /// Sets how much of the link blocks may take.
    ///
    /// # Errors
    /// An `Error` of kind `usage` for another word.
    pub fn set_urgency(&mut self, word: &str) -> Result<(), Error> {
        self.connection.urgency = urgency(word)?;
        Ok(())
    }
}

/// How much of the link a block may take, by its word.
pub(crate) fn urgency(word: &str) -> Result<Urgency, Error> {
    match word {
        "load-screen" => Ok(Urgency::LoadScreen),
        "during-play" => Ok(Urgency::DuringPlay),
        _ => Err(usage(&format!("`urgency` is `load-screen` or `during-play`, not `{word}`"))),
    }
}

pub(crate) fn usage(text: &str) -> Error {
    error(ErrorKind::Usage, text)
}
