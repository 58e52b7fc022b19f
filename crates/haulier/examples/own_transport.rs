//! haulier over a transport of one's own, both directions in one loop: the server sends the world, the
//! client its settings. The transport here is two queues that lose every fifth packet; yours is whatever
//! carries 1200 bytes from one machine to another.
//!
//!     cargo run --example own_transport

use haulier_article::{ArticleConfig, ArticlePeer, Instant};
use std::collections::VecDeque;

struct LossyQueue(VecDeque<Vec<u8>>, u32);

impl LossyQueue {
    fn send(&mut self, packet: &[u8]) {
        self.1 += 1;
        if !self.1.is_multiple_of(5) {
            self.0.push_back(packet.to_vec());
        }
    }
}

/// What your game does each frame for each peer: hand in what came, let time pass, send what there is.
fn frame(now: Instant, peer: &mut ArticlePeer, inbox: &mut LossyQueue, outbox: &mut LossyQueue) {
    while let Some(packet) = inbox.0.pop_front() {
        let _dropped = peer.handle_datagram(now, &packet); // counted in peer.drops()
    }
    peer.handle_timeout(now);
    let mut packet = Vec::new();
    while peer.poll_datagram(now, &mut packet) {
        outbox.send(&packet);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = ArticlePeer::new(ArticleConfig::default());
    let mut client = ArticlePeer::new(ArticleConfig::default());
    let (mut to_client, mut to_server) =
        (LossyQueue(VecDeque::new(), 0), LossyQueue(VecDeque::new(), 0));
    server.send_chunk(vec![b'w'; 256 * 1024])?;
    client.send_chunk("player=alice model=fox")?;

    let (mut world, mut settings, mut millis) = (None, None, 0);
    while world.is_none() || settings.is_none() {
        millis += 16; // A game would read its clock here.
        let now = Instant::from_millis(millis);
        frame(now, &mut server, &mut to_server, &mut to_client);
        frame(now, &mut client, &mut to_client, &mut to_server);
        world = world.or_else(|| client.pop_chunk());
        settings = settings.or_else(|| server.pop_chunk());
    }
    let stats = server.sender().stats();
    println!("after {millis} ms the client has the world ({} bytes)", world.unwrap().len());
    println!("and the server the settings: {:?}", settings.unwrap());
    println!("{} slices were sent, {} of them again", stats.slices_sent, stats.slices_resent);
    Ok(())
}
