//! The certificate that browsers see.
//!
//! A browser takes a self-signed certificate if the page names its SHA-256, it is valid for at most 14 days,
//! and its key is on P-256 (W3C WebTransport, `serverCertificateHashes`). Such a certificate is made here,
//! and made anew before it expires. The alternative is the certificate of a site, from a file.

use std::path::{Path, PathBuf};

use haulier::ErrorKind;
use wtransport::Identity;
use wtransport::tls::self_signed::time::{Duration, OffsetDateTime};

/// The validity of a certificate: below the 14 days that browsers allow.
const VALID: Duration = Duration::days(13);

/// The part of the validity before now, because a player's clock may be slow.
const BEFORE: Duration = Duration::days(1);

/// Where the certificate of a [`WebServer`](crate::WebServer) comes from.
#[derive(Clone, Debug)]
pub struct Certificate(Source);

#[derive(Clone, Debug)]
enum Source {
    SelfSigned(Vec<String>),
    Pem { chain: PathBuf, key: PathBuf },
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A name that cannot be in a certificate.
    #[error("a name of the certificate is neither a host name nor an IP address")]
    Name,
    /// A file cannot be read, or has no certificate or key.
    #[error("the certificate or its key: {0}")]
    File(#[from] wtransport::tls::error::PemLoadError),
}

impl CertificateError {
    /// What sort of error it is.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Name => ErrorKind::Usage,
            Self::File(_) => ErrorKind::Io,
        }
    }
}

impl Certificate {
    /// A self-signed certificate for these names, with a key on P-256. It is valid for 13 days, and a new one
    /// is made after 6: a page asks for its hash when it joins.
    pub fn self_signed<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        Self(Source::SelfSigned(names.into_iter().map(Into::into).collect()))
    }

    /// From files of PEM: a chain, the site's certificate first, and its private key. They are read when the
    /// server starts, and every 6 days, as tools that renew certificates replace them.
    pub fn from_pem_files(chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Self {
        Self(Source::Pem { chain: chain.as_ref().into(), key: key.as_ref().into() })
    }

    /// Whether a page has to name its hash.
    pub(crate) const fn is_self_signed(&self) -> bool {
        matches!(self.0, Source::SelfSigned(_))
    }

    /// Makes it, or reads it.
    pub(crate) async fn identity(&self) -> Result<Identity, CertificateError> {
        match &self.0 {
            Source::SelfSigned(names) => {
                let from = OffsetDateTime::now_utc() - BEFORE;
                let builder = Identity::self_signed_builder().subject_alt_names(names);
                let builder = builder.not_before(from).offset_from_not_before(VALID);
                builder.build().map_err(|_| CertificateError::Name)
            }
            Source::Pem { chain, key } => Ok(Identity::load_pemfiles(chain, key).await?),
        }
    }
}
