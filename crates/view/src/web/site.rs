//! Files that are in the program, at the address they are asked at.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};

use super::{Answers, Body, Door, accept};

/// The interval at which the server checks whether it should end.
const TURN: Duration = Duration::from_millis(100);

/// Files to serve.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    files: &'static [(&'static str, &'static [u8])],
}

impl Site {
    /// Names and contents; `index.html` is at `/`.
    #[must_use]
    pub const fn new(files: &'static [(&'static str, &'static [u8])]) -> Self {
        Self { files }
    }

    /// Serves them, until `is_over` says so, which it asks ten times a second.
    ///
    /// # Errors
    /// The system's error, if it cannot listen any more.
    pub fn serve(self, listener: TcpListener, is_over: impl Fn() -> bool) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let (door, files) = (Door::new(), Files { site: self, guard: Guard::new(at, &[]) });
            while !is_over() {
                if let Some((stream, _)) = accept(&listener, TURN).await {
                    door.serve(stream, files.clone());
                }
            }
            Ok(())
        })
    }

    /// The file at this path.
    pub(crate) fn answer(&self, path: &str) -> Response<Body> {
        let name = match path {
            "/" => "index.html",
            path => path.trim_start_matches('/'),
        };
        match self.files.iter().find(|(file, _)| *file == name) {
            Some(&(name, bytes)) => full(StatusCode::OK, type_of(name), Bytes::from_static(bytes)),
            None => plain(StatusCode::NOT_FOUND, "there is no such page"),
        }
    }
}

#[derive(Clone)]
struct Files {
    site: Site,
    guard: Guard,
}

impl Answers for Files {
    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        let refused = self.guard.refusal(request.method(), request.headers());
        refused.unwrap_or_else(|| self.site.answer(request.uri().path()))
    }
}

/// Decides which requests are answered.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    /// Where the server is.
    at: SocketAddr,
    /// The names that it has, in lower case.
    names: Arc<[String]>,
}

impl Guard {
    pub(crate) fn new(at: SocketAddr, names: &[String]) -> Self {
        Self { at, names: names.iter().map(|name| name.to_ascii_lowercase()).collect() }
    }

    /// The answer to a request that is refused; `None` if the request is allowed.
    pub(crate) fn refusal(&self, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| self.is_here(host)) {
            let what =
                "this host has another name: use its number, or allow the name (--view-host)";
            return Some(plain(StatusCode::MISDIRECTED_REQUEST, what));
        }
        let is_read = [Method::GET, Method::HEAD].contains(method);
        (!is_read).then(|| plain(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD"))
    }

    /// Whether a `Host` header means the address that the server is at: by number, by one of its names, or by
    /// `localhost` for loopback. A name may have any port, because a proxy has its own.
    fn is_here(&self, host: &str) -> bool {
        let at = self.at;
        let named = host.strip_prefix("localhost").and_then(|port| port.strip_prefix(':'));
        if at.ip().is_loopback() && named.and_then(|port| port.parse().ok()) == Some(at.port()) {
            return true;
        }
        let is_ours = |ip: IpAddr| at.ip().is_unspecified() || ip == at.ip();
        host.parse::<SocketAddr>().is_ok_and(|it| it.port() == at.port() && is_ours(it.ip()))
            || host.parse::<IpAddr>().is_ok_and(|ip| at.port() == 80 && is_ours(ip))
            || self.is_named(host)
    }

    fn is_named(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            _ => host,
        };
        self.names.iter().any(|known| name.eq_ignore_ascii_case(known))
    }
}

fn type_of(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}

pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    full(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

/// An answer that is complete already.
pub(crate) fn full(status: StatusCode, content_type: &'static str, bytes: Bytes) -> Response<Body> {
    with_body(status, content_type, Full::new(bytes).boxed_unsync())
}

pub(crate) fn with_body(
    status: StatusCode,
    content_type: &'static str,
    body: Body,
) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    // Nothing is fetched from elsewhere, and no text becomes a script.
    let policy = "default-src 'self' data:; script-src 'self' 'wasm-unsafe-eval'";
    let headers = [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, policy),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A foreign page could read the players through a name of its own that points here.
    #[test]
    fn a_request_for_another_host_is_not_for_us() {
        let guard = |at: &str, names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
            Guard::new(at.parse().unwrap(), &names)
        };
        let here = guard("127.0.0.1:8080", &[]);
        for host in ["127.0.0.1:8080", "localhost:8080"] {
            assert!(here.is_here(host), "{host}");
        }
        for host in ["evil.example:8080", "127.0.0.1", "127.0.0.1:80", "localhost", "[::1]:8080"] {
            assert!(!here.is_here(host), "{host}");
        }
        let everywhere = guard("0.0.0.0:80", &[]);
        assert!(everywhere.is_here("192.0.2.7") && everywhere.is_here("192.0.2.7:80"));
        assert!(!everywhere.is_here("localhost:80") && !everywhere.is_here("evil.example"));
        let named = guard("127.0.0.1:8080", &["Box.example", "kitchen"]);
        for host in ["box.example", "BOX.example:8080", "box.example:443", "kitchen:8080"] {
            assert!(named.is_here(host), "{host}");
        }
        for host in
            ["evil.example", "box.example.evil", "evil.box.example", "box.example:x", "", ":80"]
        {
            assert!(!named.is_here(host), "{host}");
        }
    }
}
