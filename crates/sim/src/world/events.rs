//! What happens next: the heap of events, and what each does to hosts and links.
//!
//! The invariant: for each host and each direction of an access the heap has the deadline that is planned for
//! it. Others of it may lie there too: they were put off or brought forward, and do nothing.

use std::cmp::Reverse;
use std::net::SocketAddr;

use haulier_core::{Ecn, FourTuple, Instant};

use super::{Stage, World};
use crate::Link;

/// The source of an event in the heap: a host by its number, or a direction of a segment by its own.
const HOST: usize = 0;
const UP: usize = 1;
const DOWN: usize = 2;

/// Kinds of events in the trace.
const SENT: u64 = 1;
const CROSSED: u64 = 3;
const DELIVERED: u64 = 4;

/// The maximum number of simultaneous events: a host that always requests to be woken at once would stop
/// time.
const MAX_EVENTS_AT_ONE_MOMENT: u64 = 1_000_000;

impl World {
    /// Handles one event, if there is one by `end`.
    pub fn step(&mut self, end: Instant) -> bool {
        loop {
            let Some(&Reverse((at, number, what))) = self.heap.peek() else { return false };
            if at > end {
                return false;
            }
            self.heap.pop();
            let id = number - if what == HOST { self.hosts_after } else { 0 };
            let planned = self.planned_mut(id, what);
            if *planned != Some(at) {
                continue; // It was put off, or brought forward.
            }
            *planned = None;
            self.steps_at_this_moment =
                if at > self.now { 0 } else { self.steps_at_this_moment + 1 };
            let count = self.steps_at_this_moment;
            assert!(count < MAX_EVENTS_AT_ONE_MOMENT, "time stands still at {:?}", self.now);
            self.now = self.now.max(at);
            self.steps += 1;
            match what {
                HOST => {
                    self.hosts[id].host.handle_timeout(self.now);
                    self.wake(id);
                }
                UP => self.cross(id),
                _ => self.deliver(id),
            }
            return true;
        }
    }

    /// Passes packets that have left an access to that of their destination.
    fn cross(&mut self, segment: usize) {
        let mut datagram = std::mem::take(&mut self.scratch);
        while let Some((label, ecn)) =
            self.segments[segment].up.poll_marked(self.now, &mut datagram)
        {
            let (source, to) = self.addresses_of(label);
            for at in 0..self.observers.len() {
                let observer = self.observers[at];
                if self.hosts[observer].segment != segment {
                    self.hosts[observer].host.meddle(self.now, source, to, &mut datagram);
                    self.wake(observer);
                }
            }
            if datagram.is_empty() {
                continue;
            }
            let Some(&id) = self.by_address.get(&to) else { continue };
            let down = self.hosts[id].segment;
            let fate = self.segments[down].down.offer_marked(self.now, &datagram, label, ecn);
            self.record(CROSSED | (fate as u64) << 8, id, &datagram);
            self.see_offer(Stage::Offered(fate), id, &datagram);
            self.plan(down, DOWN);
        }
        self.scratch = datagram;
        self.plan(segment, UP);
    }

    fn deliver(&mut self, segment: usize) {
        let mut datagram = std::mem::take(&mut self.scratch);
        let mut heard = Vec::new();
        while let Some((label, ecn)) =
            self.segments[segment].down.poll_marked(self.now, &mut datagram)
        {
            let (source, to) = self.addresses_of(label);
            let Some(&id) = self.by_address.get(&to) else { continue };
            if self.hosts[id].segment == segment {
                self.record(DELIVERED, id, &datagram);
                self.see(Stage::Arrived, id, 0, &datagram);
                let path = FourTuple::new(source);
                self.hosts[id].host.handle_marked_datagram(self.now, path, ecn, &mut datagram);
                if !heard.contains(&id) {
                    heard.push(id);
                }
            }
        }
        self.scratch = datagram;
        self.plan(segment, DOWN);
        heard.into_iter().for_each(|id| self.wake(id));
    }

    /// Sends what a host has to send, and schedules its next events.
    pub(super) fn wake(&mut self, id: usize) {
        let own = self.hosts[id].address;
        while let Some(shot) = self.hosts[id].host.poll_shot() {
            self.send(id, shot.from.unwrap_or(own), shot.to, Ecn::NotEct, &shot.bytes);
        }
        let mut batch = std::mem::take(&mut self.batch);
        loop {
            batch.clear();
            self.hosts[id].host.poll_transmit(self.now, &mut batch);
            for (path, ecn, bytes) in batch.iter_marked() {
                self.send(id, own, path.remote, ecn, bytes);
            }
            if !batch.is_full() {
                break;
            }
        }
        self.batch = batch;
        if !self.only_measures {
            self.hosts[id].host.check_invariants();
        }
        self.plan(id, HOST);
        self.plan(self.hosts[id].segment, UP);
    }

    fn send(&mut self, id: usize, source: SocketAddr, to: SocketAddr, ecn: Ecn, datagram: &[u8]) {
        let label = u64::from(self.number_of(source)) << 32 | u64::from(self.number_of(to));
        let up = &mut self.segments[self.hosts[id].segment].up;
        let fate = up.offer_marked(self.now, datagram, label, ecn);
        self.record(SENT | (fate as u64) << 8, id, datagram);
        self.see_offer(Stage::Sent(fate), id, datagram);
    }

    /// A datagram of this host, or to it, was offered to its access.
    fn see_offer(&mut self, stage: Stage, id: usize, datagram: &[u8]) {
        if self.sights.is_none() {
            return;
        }
        let segment = &self.segments[self.hosts[id].segment];
        let link = if matches!(stage, Stage::Sent(_)) { &segment.up } else { &segment.down };
        let waits = link.queueing_delay(self.now).as_nanos();
        self.see(stage, id, u64::try_from(waits).unwrap_or(u64::MAX), datagram);
    }

    fn record(&mut self, kind: u64, id: usize, bytes: &[u8]) {
        if !self.only_measures {
            self.trace.record(self.now, kind, id as u64, bytes);
        }
    }

    fn plan(&mut self, id: usize, what: usize) {
        let link = |link: &Link| {
            if !self.only_measures {
                link.check_conservation();
            }
            link.poll_timeout()
        };
        let at = match what {
            HOST => self.hosts[id].host.poll_timeout(),
            UP => link(&self.segments[id].up),
            _ => link(&self.segments[id].down),
        };
        let at = at.map(|at| at.max(self.now));
        let planned = self.planned_mut(id, what);
        if at != *planned {
            *planned = at;
            let number = id + if what == HOST { self.hosts_after } else { 0 };
            self.heap.extend(at.map(|at| Reverse((at, number, what))));
        }
    }

    fn planned_mut(&mut self, id: usize, what: usize) -> &mut Option<Instant> {
        match what {
            HOST => &mut self.hosts[id].planned,
            UP => &mut self.segments[id].planned[0],
            _ => &mut self.segments[id].planned[1],
        }
    }
}
