//! QUIC: quinn, one stream, with windows that do not hold it back, a thread for each end.

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::time::Instant;

use quinn::congestion::{BbrConfig, CubicConfig};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use rustls::pki_types::PrivateKeyDer;

use crate::table::{Crossing, cpu_of, spawn};

pub(crate) fn run(bytes: u64, is_bbr: bool) -> Crossing {
    let key = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let certificate = key.cert.der().clone();
    let secret = PrivateKeyDer::Pkcs8(key.signing_key.serialize_der().into());
    let mut config = ServerConfig::with_single_cert(vec![certificate.clone()], secret).unwrap();
    config.transport_config(transport(is_bbr));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let (ready, listens) = mpsc::channel();
    let sender = spawn("line-sender", move || {
        block_on(serve(bytes, config, ready));
        cpu_of("line-sender")
    });
    let to = listens.recv().unwrap();
    let begun = Instant::now();
    let receiver = spawn("line-receiver", move || {
        block_on(fetch(bytes, to, is_bbr, roots));
        cpu_of("line-receiver")
    });
    let receiver = receiver.join().unwrap();
    let wall = begun.elapsed();
    Crossing { bytes, wall, sender: sender.join().unwrap(), receiver }
}

fn block_on(run: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run);
}

fn transport(is_bbr: bool) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window((32_u32 << 20).into()).send_window(32 << 20);
    match is_bbr {
        true => transport.congestion_controller_factory(Arc::new(BbrConfig::default())),
        false => transport.congestion_controller_factory(Arc::new(CubicConfig::default())),
    };
    // As haulier does: what loopback carries is found.
    let mut discovery = quinn::MtuDiscoveryConfig::default();
    discovery.upper_bound(8972);
    transport.mtu_discovery_config(Some(discovery));
    Arc::new(transport)
}

/// With the buffers that haulier asks for.
fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(4 << 20).unwrap();
    options.set_send_buffer_size(4 << 20).unwrap();
    let mut config = quinn::EndpointConfig::default();
    config.max_udp_payload_size(9000).unwrap();
    Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime)).unwrap()
}

async fn serve(bytes: u64, config: ServerConfig, ready: mpsc::Sender<SocketAddr>) {
    let data = bytes::Bytes::from(vec![7; bytes as usize]);
    let endpoint = endpoint(Some(config));
    ready.send(endpoint.local_addr().unwrap()).unwrap();
    let connection = endpoint.accept().await.unwrap().await.unwrap();
    let (mut send, mut receive) = connection.accept_bi().await.unwrap();
    receive.read_to_end(8).await.unwrap();
    send.write_all_chunks(&mut [data]).await.unwrap();
    send.finish().unwrap();
    connection.closed().await;
}

async fn fetch(bytes: u64, to: SocketAddr, is_bbr: bool, roots: rustls::RootCertStore) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    config.transport_config(transport(is_bbr));
    let endpoint = endpoint(None);
    let connection = endpoint.connect_with(config, to, "localhost").unwrap().await.unwrap();
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(b"give").await.unwrap();
    send.finish().unwrap();
    let mut left = bytes;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await.unwrap() {
        left -= chunk.bytes.len() as u64;
    }
    assert_eq!(left, 0);
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
}
