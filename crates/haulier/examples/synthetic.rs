//! A block of any length that is neither read from anything nor stored: what the network does without a disk.
//!
//!     cargo run --release -p haulier --example synthetic -- serve 127.0.0.1:0 1000000000
//!     cargo run --release -p haulier --example synthetic -- fetch TICKET
//!
//! `docs/lab/veth.py` sets it beside `haulier serve` and `fetch`.

use bytes::Bytes;
use haulier::proto::connection::{BlockTree, ChunkValue};
use haulier::{Block, Client, CloseCode, Connect, ConnectionConfig, Delivery, Event};
use haulier::{Server, ServerConfig, ServerCredentials, ServerEvent};
use std::error::Error;
use std::time::{Duration, Instant};

static ZEROS: [u8; ChunkValue::CHUNK_BYTES] = [0; ChunkValue::CHUNK_BYTES];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", at, bytes] => serve(at, bytes.parse()?),
        ["fetch", ticket] => fetch(ticket),
        _ => Err("serve ADDRESS BYTES, or fetch TICKET".into()),
    }
}

fn serve(at: &str, length: u64) -> Result<(), Box<dyn Error>> {
    let chunk = |index: u32| {
        let left = length - u64::from(index) * ZEROS.len() as u64;
        &ZEROS[..left.min(ZEROS.len() as u64) as usize]
    };
    let count = u32::try_from(length.div_ceil(ZEROS.len() as u64))?;
    let values = (0..count).map(|index| ChunkValue::of(length, index, chunk(index))).collect();
    let block = Block::from_source(1, BlockTree::from_values(length, values)?);
    let credentials = ServerCredentials::default().with_secret(haulier::random_secret()?);
    let server = Server::bind(at, ServerConfig::new(1, credentials))?;
    let ticket = server.ticket(&[server.local_addr()])?.ok_or("it has a secret")?;
    println!("{}", ticket.to_text());
    loop {
        match server.wait(Duration::from_secs(60))? {
            Some((id, ServerEvent::Connecting { .. })) => {
                let sent = server.send_block(id, &block);
                if sent.is_err() {
                    server.close(id, CloseCode::NOT_ACCEPTED, "your limit is below our block");
                }
            }
            Some((id, ServerEvent::Connection(Event::ChunksWanted))) => {
                while let Some(wanted) = server.want_chunk(id) {
                    let bytes = Bytes::from_static(chunk(wanted.index));
                    let _gone = server.provide_chunk(id, wanted.block, wanted.index, bytes);
                }
            }
            _ => {}
        }
    }
}

fn fetch(ticket: &str) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let mut connect: Connect = ticket.try_into()?;
    connect.connection =
        ConnectionConfig::default().with_delivery(Delivery::Chunks).with_max_block_bytes(1 << 49);
    let client = Client::connect(connect)?;
    let mut received = 0;
    while let Some(event) = client.wait(Duration::from_secs(60))? {
        match event {
            Event::Chunk { data, .. } => received += data.len(),
            Event::BlockComplete { .. } => break,
            Event::Closed(reason) => return Err(reason.to_string().into()),
            _ => {}
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{received} bytes in {seconds:.3} s: {:.3} GB/s", received as f64 / seconds / 1e9);
    client.finish(Duration::from_secs(5))?;
    Ok(())
}
