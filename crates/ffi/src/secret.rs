//! Secrets, identities and connect tokens, which a program makes before a client joins.

use core::ffi::{c_char, c_void};

use haulier::{
    Identity, Secret, TokenClaims, TokenKey, TokenRate, TokenServers, issue_token, random_secret,
};

use crate::memory::{
    Versioned, addresses, all_addresses, bytes, handle, put, put_sized, put_text, settings,
};
use crate::result::{Failure, border, haulier_result};
use haulier_result::HAULIER_OK;

/// 32 secret bytes: a server's secret, a token key, the private key of an identity. The program keeps them
/// safe, and wipes what it does not need any more (haulier_secret_wipe()).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_secret {
    /// The bytes: 32 random ones.
    pub bytes: [u8; 32],
}

impl haulier_secret {
    pub(crate) const fn to_secret(self) -> Secret {
        Secret::from_bytes(self.bytes)
    }
}

/// Makes a new secret, of random bytes of the system.
///
/// Returns HAULIER_ERROR_IO if the system has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_secret_random(secret: *mut haulier_secret) -> haulier_result {
    border(|| {
        let random = random_secret().map_err(|error| {
            let what = format!("no random bytes: {error}");
            Failure::new(haulier_result::HAULIER_ERROR_IO, what)
        })?;
        let bytes = *random.as_bytes();
        // SAFETY: null, or a secret can be written there, as the caller promises.
        unsafe { put(secret, haulier_secret { bytes }, "secret") }?;
        Ok(HAULIER_OK)
    })
}

/// Overwrites a secret with zeros, which no compiler leaves out. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_secret_wipe(secret: *mut haulier_secret) {
    if !secret.is_null() {
        // SAFETY: not null, and a secret is there, as the caller promises. Volatile, or it could be left out.
        unsafe { secret.write_volatile(haulier_secret { bytes: [0; 32] }) };
    }
}

/// Writes the public key of an identity, 32 bytes, against which clients check the server. Tickets contain
/// it; a program puts it into a token, and gives it to a client that connects by address.
///
/// identity: the private key, 32 random bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_identity_public(
    identity: *const haulier_secret,
    public_key: *mut u8,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a secret, as the caller promises.
        let identity = unsafe { handle(identity, "identity") }?;
        let public = Identity::new(identity.to_secret()).public();
        // SAFETY: null, or 32 bytes can be written there.
        unsafe { put(public_key.cast::<[u8; 32]>(), public, "public_key") }?;
        Ok(HAULIER_OK)
    })
}

/// A key that a matchmaker shares with its servers.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_token_key {
    /// The key.
    pub key: haulier_secret,
    /// Names the key, so that servers can have the next one before a matchmaker uses it.
    pub id: u32,
}

/// What a matchmaker says about a client, sealed for the server. Fill it with haulier_token_claims_init().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct haulier_token_claims {
    /// sizeof(haulier_token_claims); set by haulier_token_claims_init().
    pub struct_size: usize,
    /// When the token is issued, in seconds since 1970. A server that was started later refuses it.
    pub issued_unix_s: u64,
    /// When it expires, in seconds since 1970: from that second on it is refused.
    pub expiry_unix_s: u64,
    /// The program's name for the player, which the server reads in the token. 0, the default: no name.
    pub client_id: u64,
    /// The addresses of the servers that accept it, as text, up to 8. None, the default: every server with
    /// the key, and the client needs an address from elsewhere (haulier_client_settings, servers).
    pub servers: *const *const c_char,
    /// How many servers there are.
    pub server_count: usize,
    /// The address at which the matchmaker knows the client, which saves a round trip, as text with a port,
    /// which is not compared. Null, the default: not known.
    pub client_address: *const c_char,
    /// Data for the server, up to 256 bytes. None, the default.
    pub user_data: *const c_void,
    /// How many bytes of it there are.
    pub user_data_bytes: usize,
    /// The public key of the server (haulier_identity_public()), 32 bytes, which the client then requires.
    /// Null, the default: none.
    pub server_identity: *const u8,
    /// The highest rate of blocks for this client, in bit/s, up to 34 Gbit/s. 0, the default: no limit.
    pub max_rate_bps: u64,
    /// A lowest rate for this client, in bit/s, for the server's program: the connection ignores it. 0, the
    /// default: not set.
    pub min_rate_bps: u64,
}

// SAFETY: repr(C), the size is first, and all fields are numbers and pointers.
unsafe impl Versioned for haulier_token_claims {
    const NAME: &str = "haulier_token_claims";
    const FIRST_BYTES: usize = size_of::<Self>();

    fn defaults() -> Self {
        Self {
            struct_size: size_of::<Self>(),
            issued_unix_s: 0,
            expiry_unix_s: 0,
            client_id: 0,
            servers: core::ptr::null(),
            server_count: 0,
            client_address: core::ptr::null(),
            user_data: core::ptr::null(),
            user_data_bytes: 0,
            server_identity: core::ptr::null(),
            max_rate_bps: 0,
            min_rate_bps: 0,
        }
    }
}

/// Fills the claims of a token with their defaults. struct_size: sizeof(haulier_token_claims).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_token_claims_init(
    claims: *mut haulier_token_claims,
    struct_size: usize,
) -> haulier_result {
    // SAFETY: null, or `struct_size` bytes can be written there, as the caller promises.
    border(|| unsafe { put_sized(claims, struct_size, haulier_token_claims::defaults()) })
}

/// Makes a connect token, as a matchmaker does: text that lets one player join, once, for
/// haulier_client_connect(). It is a secret of that player's.
///
/// key: the key and its name, as the servers have them. protocol_id: the program's number, as the servers
/// have it. text: where the token goes, with its 0; HAULIER_TEXT_BYTES are always enough.
///
/// Returns HAULIER_ERROR_USAGE for claims that break a limit, HAULIER_ERROR_IO if the system has no random
/// bytes or an address is a name that it does not know.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn haulier_token_issue(
    key: *const haulier_token_key,
    protocol_id: u64,
    claims: *const haulier_token_claims,
    text: *mut c_char,
    text_bytes: usize,
) -> haulier_result {
    border(|| {
        // SAFETY: null or a key, as the caller promises.
        let key = unsafe { handle(key, "key") }?;
        // SAFETY: null or claims, of the size that they say.
        let given = unsafe { settings(given_claims(claims)?) }?;
        // SAFETY: what the claims point to is what the header says.
        let claims = unsafe { claims_of(&given) }?;
        let key = TokenKey { id: key.id, key: key.key.to_secret() };
        let mut token = issue_token(&key, protocol_id, &claims)?;
        if !given.server_identity.is_null() {
            // SAFETY: not null, so 32 bytes are there, as the caller promises.
            token = token.with_identity(unsafe { given.server_identity.cast::<[u8; 32]>().read() });
        }
        // SAFETY: null, or text_bytes can be written there, as the caller promises.
        unsafe { put_text(text, text_bytes, &token.to_text()) }
    })
}

/// Claims must be given, because they have no useful default.
fn given_claims(
    claims: *const haulier_token_claims,
) -> Result<*const haulier_token_claims, Failure> {
    if claims.is_null() { Err(Failure::usage("`claims` is a null pointer")) } else { Ok(claims) }
}

/// # Safety
/// What the claims point to is what the header says.
unsafe fn claims_of(given: &haulier_token_claims) -> Result<TokenClaims, Failure> {
    let rate = |bps: u64, name: &str| match bps {
        0 => Ok(None),
        _ => TokenRate::from_bps(bps)
            .map(Some)
            .ok_or_else(|| Failure::usage(format!("`{name}` is more than a token can hold"))),
    };
    // SAFETY: the caller's promise, here and below.
    let servers = unsafe { all_addresses(given.servers, given.server_count, "servers") }?;
    let servers = match *servers {
        [] => TokenServers::Every,
        [one] => TokenServers::One(one),
        _ => TokenServers::Each(servers),
    };
    let client_address = match given.client_address.is_null() {
        true => None,
        // SAFETY: see above.
        false => unsafe { addresses(given.client_address, "client_address") }?.first().copied(),
    };
    // SAFETY: see above.
    let user_data = unsafe { bytes(given.user_data, given.user_data_bytes, "user_data") }?;
    Ok(TokenClaims::new(given.issued_unix_s, given.expiry_unix_s, servers)
        .with_client_id(given.client_id.to_le_bytes())
        .with_client_address(client_address)
        .with_min_rate(rate(given.min_rate_bps, "min_rate_bps")?)
        .with_max_rate(rate(given.max_rate_bps, "max_rate_bps")?)
        .with_user_data(user_data.to_vec()))
}
