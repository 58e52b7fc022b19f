//! A web server for people on this machine: pages that are in the program.
//!
//! It answers GET and HEAD, and nothing else. A request that names another host than the one it came to is
//! refused, so that a page from elsewhere, whose name somebody points at this machine, reads nothing here.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

use crate::failure::Failure;
use crate::interrupt;

/// How often the server looks whether the user wants out.
const TURN: Duration = Duration::from_millis(100);

/// What it serves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    /// Names and contents; `index.html` is at `/`.
    pub(crate) files: &'static [(&'static str, &'static [u8])],
}

/// Serves until Ctrl-C.
pub(crate) fn serve(listener: TcpListener, site: Site) -> Result<(), Failure> {
    let broken = |error: io::Error| Failure::socket("the web server cannot go on", &error);
    listener.set_nonblocking(true).map_err(broken)?;
    let at = listener.local_addr().map_err(broken)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(broken)?.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(broken)?;
        while !interrupt::requested() {
            if let Ok(accepted) = tokio::time::timeout(TURN, listener.accept()).await {
                // A connection that is gone before it was accepted is nobody's fault.
                let Ok((stream, _)) = accepted else { continue };
                let answer =
                    move |request| async move { Ok::<_, Infallible>(site.answer(at, &request)) };
                let connection = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service_fn(answer));
                tokio::spawn(async move {
                    // What a browser breaks off.
                    let _gone = connection.await;
                });
            }
        }
        Ok(())
    })
}

impl Site {
    fn answer(&self, at: SocketAddr, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        if !host.is_some_and(|host| is_here(at, host)) {
            return plain(StatusCode::MISDIRECTED_REQUEST, "this host has another name");
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "GET or HEAD");
        }
        let name = match request.uri().path() {
            "/" => "index.html",
            path => path.trim_start_matches('/'),
        };
        match self.files.iter().find(|(file, _)| *file == name) {
            Some(&(name, bytes)) => with_type(StatusCode::OK, type_of(name), bytes),
            None => plain(StatusCode::NOT_FOUND, "there is no such page"),
        }
    }
}

/// Whether a `Host` header means the address that the server is at: by number, or `localhost` for loopback.
fn is_here(at: SocketAddr, host: &str) -> bool {
    let named = host.strip_prefix("localhost").and_then(|port| port.strip_prefix(':'));
    if at.ip().is_loopback() && named.and_then(|port| port.parse().ok()) == Some(at.port()) {
        return true;
    }
    let is_ours = |ip: IpAddr| at.ip().is_unspecified() || ip == at.ip();
    host.parse::<SocketAddr>().is_ok_and(|host| host.port() == at.port() && is_ours(host.ip()))
        || host.parse::<IpAddr>().is_ok_and(|ip| at.port() == 80 && is_ours(ip))
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

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    with_type(status, "text/plain; charset=utf-8", text.as_bytes())
}

fn with_type(
    status: StatusCode,
    content_type: &'static str,
    bytes: &'static [u8],
) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(bytes)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-cache")] {
        headers.insert(name, hyper::header::HeaderValue::from_static(value));
    }
    let policy = "default-src 'self' data:; script-src 'self' 'wasm-unsafe-eval'";
    let policy = hyper::header::HeaderValue::from_static(policy);
    headers.insert(hyper::header::CONTENT_SECURITY_POLICY, policy);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_another_host_is_not_for_us() {
        let at = "127.0.0.1:8080".parse().unwrap();
        for host in ["127.0.0.1:8080", "localhost:8080"] {
            assert!(is_here(at, host), "{host}");
        }
        for host in ["evil.example:8080", "127.0.0.1", "127.0.0.1:80", "localhost", "[::1]:8080"] {
            assert!(!is_here(at, host), "{host}");
        }
        let everywhere = "0.0.0.0:80".parse().unwrap();
        assert!(is_here(everywhere, "192.0.2.7") && is_here(everywhere, "192.0.2.7:80"));
        assert!(!is_here(everywhere, "localhost:80") && !is_here(everywhere, "evil.example"));
    }
}
