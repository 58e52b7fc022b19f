//! Handles: any thread and any task may use them, and the network does not wait for any of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use haulier::{
    Block, Client, Connect, Event, Listen, NetworkError, SendError, Server, ServerEvent,
};

use crate::support::{MAX, Pair, bind, block_on, bytes, config_for, with_secret};

#[test]
fn handles_go_to_other_threads() {
    const fn is_shared<T: Send + Sync + Clone + std::fmt::Debug>() {}
    is_shared::<Client>();
    is_shared::<Server>();
}

/// Any of them passes through `Box<dyn Error + Send + Sync>`, that is through `?` in any program.
#[test]
fn errors_go_anywhere() {
    const fn is_error<T: std::error::Error + Send + Sync + 'static>() {}
    is_error::<haulier::AttemptError>();
    is_error::<haulier::ClientError>();
    is_error::<haulier::CloseReason>();
    is_error::<haulier::ConfigError>();
    is_error::<haulier::ConnectError>();
    is_error::<haulier::ConnectTokenError>();
    is_error::<haulier::DropReason>();
    is_error::<haulier::FinishError>();
    is_error::<haulier::IssueError>();
    is_error::<haulier::IssueTokenError>();
    is_error::<haulier::ListenError>();
    is_error::<NetworkError>();
    is_error::<haulier::ProvideError>();
    is_error::<SendError>();
    is_error::<haulier::TicketError>();
    is_error::<haulier::TreeError>();
    is_error::<haulier::file::FileError>();
}

/// A game that loads a level.
#[test]
fn a_block_arrives_without_polling() {
    let server = bind(with_secret());
    let client = Client::connect(config_for(&server)).unwrap();
    let block = Block::new(1, bytes(3_000_000));
    let (mut sent, mut arrived) = (None, false);
    while !arrived {
        let (id, event) = server.wait(MAX).unwrap().expect("no time-out");
        match event {
            ServerEvent::Connecting { .. } => sent = server.send_block(id, &block).ok(),
            ServerEvent::Connection(Event::BlockSent { handle }) => {
                arrived = sent == Some(handle);
            }
            _ => {}
        }
    }
    // All of it was acknowledged before the first look.
    let mut data = None;
    while let Some(event) = client.poll().unwrap() {
        if let Event::Block { data: whole, .. } = event {
            data = Some(whole);
        }
    }
    assert_eq!(data.as_ref(), Some(block.data()));
}

/// For longer than the idle time-out, as the server's own counters show.
#[test]
fn a_client_that_is_not_polled_stays_connected() {
    let mut config = with_secret();
    config.connection.idle_timeout = Duration::from_secs(1);
    let mut pair = Pair::connected(config);
    let id = pair.id();
    // A keep-alive comes three times in an idle time-out.
    let received =
        |pair: &Pair| pair.server.connection_stats(id).map(|stats| stats.datagrams_received);
    let before = received(&pair).unwrap();
    while received(&pair).expect("it is connected") < before + 8 {
        let event = pair.server.wait(Duration::from_millis(50)).unwrap();
        assert!(
            !matches!(event, Some((_, ServerEvent::Connection(Event::Closed(_))))),
            "{event:?}"
        );
    }
    pair.client.send_message("still here").unwrap();
    pair.until(|pair| pair.server_count(|event| matches!(event, Event::Message { .. })) == 1);
}

#[test]
fn one_thread_sends_while_another_waits() {
    let pair = Pair::connected(with_secret());
    let (id, Pair { server, client, .. }) = (pair.id(), pair);
    let (sender, echo) = (client.clone(), &server);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut echoed = 0;
            while echoed < 500 {
                match echo.wait(MAX).unwrap().expect("no time-out").1 {
                    ServerEvent::Connection(Event::Message { data, .. }) => {
                        echo.send_message(id, data).unwrap();
                        echoed += 1;
                    }
                    ServerEvent::Connection(Event::MessageAcked { .. }) => {}
                    event => panic!("{event:?}"),
                }
            }
        });
        scope.spawn(move || {
            for number in 0..500 {
                while let Err(error) = sender.send_message(number.to_string()) {
                    assert!(matches!(error, SendError::QueueFull { .. }), "{error}");
                    thread::yield_now();
                }
            }
        });
        for number in 0..500 {
            let message = loop {
                match client.wait(MAX).unwrap().expect("an echo") {
                    Event::Message { data, .. } => break data,
                    Event::MessageAcked { .. } | Event::MessageWritable { .. } => {}
                    other => panic!("{other:?}"),
                }
            };
            assert_eq!(message, number.to_string());
        }
    });
}

/// Two threads wait at one handle: each event comes to one of them, and the end to both.
#[test]
fn each_event_is_taken_once() {
    let pair = Pair::connected(with_secret());
    let (id, Pair { server, client, .. }) = (pair.id(), pair);
    let taken = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in [client.clone(), client] {
            let taken = &taken;
            scope.spawn(move || {
                while let Some(event) = client.wait(MAX).unwrap() {
                    let is_message = matches!(event, Event::Message { .. });
                    taken.fetch_add(is_message.into(), Ordering::Relaxed);
                }
                assert!(client.is_closed(), "no time-out");
            });
        }
        for number in 0..100 {
            server.send_message(id, number.to_string()).unwrap();
        }
        server.finish(MAX).unwrap();
    });
    // A shutdown does not wait for messages, but those that came were taken once.
    assert!(taken.load(Ordering::Relaxed) <= 100);
}

#[test]
fn inline_both_work_in_one_thread_and_neither_can_be_awaited() {
    let server = Listen::bind("127.0.0.1:0").unwrap().inline().start(with_secret()).unwrap();
    let connect = Connect::from(config_for(&server)).inline();
    let mut pair = Pair::new(server, Client::connect(connect).unwrap());
    pair.until(|pair| pair.has_connected());
    let block = Block::new(1, bytes(1_000_000));
    pair.server.send_block(pair.id(), &block).unwrap();
    pair.until(|pair| pair.client_count(|event| matches!(event, Event::Block { .. })) == 1);
    let error = block_on(pair.client.next_event()).unwrap_err();
    assert!(matches!(error, NetworkError::Inline), "{error}");
    // Both finish only because both are driven.
    let leaving = thread::spawn(move || pair.client.finish(MAX));
    while !leaving.is_finished() {
        pair.server.wait(Duration::from_millis(1)).unwrap();
    }
    leaving.join().unwrap().unwrap();
}
