//! The faces that are awaited: the same joins in tasks, and futures that are dropped half way.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use haulier::aio::{Client, Server};
use haulier::{
    Block, ClientConfig, CloseCode, CloseReason, Connect, ConnectError, Credentials, Event,
    RefusalCode, Secret, ServerEvent,
};

use crate::support::{MOST, PROTOCOL_ID, bytes, secret, with_secret};

fn bind() -> Server {
    let mut config = with_secret();
    config.connection.max_rate_bps = 200_000_000;
    Server::bind("127.0.0.1:0", config).unwrap()
}

fn connect_with(server: &Server, secret: Secret) -> Connect {
    let credentials = Credentials::Secret { secret, identity: None };
    Connect::new(server.local_addr().unwrap(), PROTOCOL_ID, credentials)
}

/// Serves `block` to everybody, and echoes messages; returns why its first client left.
async fn serve(server: &mut Server, block: &Block) -> CloseReason {
    while let Some((id, event)) = server.next_event().await.unwrap() {
        match event {
            ServerEvent::Connecting { .. } => drop(server.send_block(id, block).unwrap()),
            ServerEvent::Connection(Event::Message(data)) => {
                server.send_message(id, data).unwrap();
            }
            ServerEvent::Connection(Event::Closed(reason)) => return reason,
            _ => {}
        }
    }
    panic!("the server was shut down");
}

/// Within the time that only ends a test that hangs.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(MOST, future).await.expect("no time-out")
}

/// Polls it once, and drops it.
async fn begin<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

#[tokio::test]
async fn a_client_joins_and_leaves_well() {
    let mut server = bind();
    let connect = connect_with(&server, secret()).with_request("alice");
    let block = Block::new(1, bytes(1_000_000));
    let join = async {
        let mut client = Client::connect(connect).await.unwrap();
        client.send_message("hello").unwrap();
        let (mut world, mut echo) = (None, None);
        while world.is_none() || echo.is_none() {
            match client.next_event().await.unwrap().expect("it is open") {
                Event::Block { data, .. } => world = Some(data),
                Event::Message(data) => echo = Some(data),
                _ => {}
            }
        }
        assert_eq!((world.as_ref(), echo.unwrap()), (Some(block.data()), "hello".into()));
        client.finish(MOST).await.unwrap()
    };
    let (there, here) = within(async { tokio::join!(serve(&mut server, &block), join) }).await;
    assert_eq!(here, CloseReason::Here(CloseCode::DONE));
    assert_eq!(there, CloseReason::There { code: CloseCode::DONE, reason: String::new() });
}

/// Each wait is given up again and again, at both ends; each event still comes, once and in order.
#[tokio::test]
async fn a_future_that_is_dropped_loses_nothing() {
    let mut server = bind();
    let connect = connect_with(&server, secret());
    let block = Block::new(1, bytes(300_000));
    let mut serving = pin!(serve(&mut server, &block));
    let mut client = within(async {
        tokio::select! {
            client = Client::connect(connect) => client.unwrap(),
            _ = &mut serving => panic!("the client has left"),
        }
    })
    .await;
    for number in 0..200 {
        client.send_message(format!("{number}")).unwrap();
    }
    let (mut echoes, mut blocks, mut given_up) = (0, 0, 0);
    within(async {
        while echoes < 200 || blocks < 1 {
            tokio::select! {
                biased;
                _ = &mut serving => panic!("the client has left"),
                event = begin(client.next_event()) => match event.map(|event| event.unwrap()) {
                    Some(Some(Event::Message(data))) => {
                        assert_eq!(data, echoes.to_string());
                        echoes += 1;
                    }
                    Some(Some(Event::Block { data, .. })) => {
                        assert_eq!(&data, block.data());
                        blocks += 1;
                    }
                    Some(event) => assert!(event.is_some(), "it is open"),
                    None => {
                        given_up += 1;
                        // Nothing else lets the runtime look at its sockets.
                        tokio::task::yield_now().await;
                    }
                },
            }
        }
    })
    .await;
    assert!(given_up > 0, "nothing was dropped");
}

#[tokio::test]
async fn a_refusal_is_an_error_that_says_why() {
    let mut server = bind();
    let connect = connect_with(&server, Secret::from_bytes([8; 32]));
    let error = within(async {
        tokio::select! {
            client = Client::connect(connect) => client.unwrap_err(),
            _ = server.next_event() => panic!("nobody may come in"),
        }
    })
    .await;
    let refused = CloseReason::Refused(RefusalCode::Key);
    assert!(matches!(&error, ConnectError::Closed(reason) if *reason == refused), "{error:?}");
    assert!(error.to_string().contains("another secret"), "{error}");
}

#[tokio::test]
async fn a_server_that_finishes_tells_its_clients() {
    let mut server = bind();
    let mut connecting = Box::pin(Client::connect(connect_with(&server, secret())));
    let mut client = within(async {
        loop {
            tokio::select! {
                client = &mut connecting => break client.unwrap(),
                event = server.next_event() => drop(event.unwrap()),
            }
        }
    })
    .await;
    let end = async {
        while let Some(event) = client.next_event().await.unwrap() {
            if let Event::Closed(reason) = event {
                return reason;
            }
        }
        panic!("it ended without a word");
    };
    let (told, reason) = within(async { tokio::join!(server.finish(MOST), end) }).await;
    told.unwrap();
    let code = CloseCode::SHUTTING_DOWN;
    assert_eq!(reason, CloseReason::There { code, reason: String::new() });
}

/// What the polled face gets wrong the awaited one does, too: a configuration that makes no client.
#[tokio::test]
async fn a_request_that_is_too_long_makes_no_client() {
    let address = "192.0.2.1:1".parse().unwrap();
    let mut config = ClientConfig::new(address, PROTOCOL_ID, Credentials::Open);
    config.request = vec![0; 401];
    let error = Client::connect(config).await.unwrap_err();
    assert!(matches!(error, ConnectError::Config(_)), "{error:?}");
}
