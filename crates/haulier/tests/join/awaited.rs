//! Awaited handles: with an executor that knows nothing of sockets, with tokio's tasks in place of the
//! network threads, and futures that are dropped half way.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use haulier::proto::client::ClientConfig;
use haulier::{
    Block, Client, CloseCode, CloseReason, Connect, ConnectError, Credentials, Event, RefusalCode,
    Secret, Server, ServerEvent,
};

use crate::support::{MAX, PROTOCOL_ID, bind, block_on, bytes, config_for, with_secret};

/// Serves `block` to all clients, and echoes messages; returns why its first client left.
async fn serve(server: &Server, block: &Block) -> CloseReason {
    while let Some((id, event)) = server.next_event().await.unwrap() {
        match event {
            ServerEvent::Connecting { .. } => drop(server.send_block(id, block).unwrap()),
            ServerEvent::Connection(Event::Message { data, .. }) => {
                server.send_message(id, data).unwrap();
            }
            ServerEvent::Connection(Event::Closed(reason)) => return reason,
            _ => {}
        }
    }
    panic!("the server was shut down");
}

/// Joins, gets the block and an echo, and leaves well.
async fn join(connect: Connect, block: &Block) -> CloseReason {
    let client = Client::connect(connect).unwrap();
    client.connected().await.unwrap();
    client.send_message("hello").unwrap();
    let (mut world, mut echo) = (None, None);
    while world.is_none() || echo.is_none() {
        match client.next_event().await.unwrap().expect("it is open") {
            Event::Block { data, .. } => world = Some(data),
            Event::Message { data, .. } => echo = Some(data),
            _ => {}
        }
    }
    assert_eq!((world.as_ref(), echo.unwrap()), (Some(block.data()), "hello".into()));
    client.finish_async(MAX).await.unwrap()
}

/// Both at the same time, in one task.
pub(crate) async fn both<A, B>(a: impl Future<Output = A>, b: impl Future<Output = B>) -> (A, B) {
    let (mut a, mut b, mut done) = (pin!(a), pin!(b), (None, None));
    poll_fn(|context| {
        if done.0.is_none()
            && let Poll::Ready(output) = a.as_mut().poll(context)
        {
            done.0 = Some(output);
        }
        if done.1.is_none()
            && let Poll::Ready(output) = b.as_mut().poll(context)
        {
            done.1 = Some(output);
        }
        if done.0.is_some() && done.1.is_some() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    (done.0.unwrap(), done.1.unwrap())
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

fn ends() -> (CloseReason, CloseReason) {
    let there = CloseReason::There { code: CloseCode::DONE, reason: String::new() };
    (there, CloseReason::Here(CloseCode::DONE))
}

#[test]
fn a_client_joins_and_leaves_well_in_any_executor() {
    let (server, block) = (bind(with_secret()), Block::new(1, bytes(1_000_000)));
    let connect = Connect::from(config_for(&server)).with_request("alice");
    assert_eq!(block_on(both(serve(&server, &block), join(connect, &block))), ends());
}

/// Each wait is given up again and again; each event still comes, once and in order.
#[test]
fn a_future_that_is_dropped_loses_nothing() {
    let (server, block) = (bind(with_secret()), Block::new(1, bytes(300_000)));
    let connect = config_for(&server);
    let joining = async {
        let client = Client::connect(connect).unwrap();
        client.connected().await.unwrap();
        for number in 0..200 {
            client.send_message(format!("{number}")).unwrap();
        }
        let (mut echoes, mut blocks, mut given_up) = (0, 0, 0);
        while echoes < 200 || blocks < 1 {
            let event = match begin(client.next_event()).await {
                Some(event) => event,
                None => {
                    given_up += 1;
                    client.next_event().await
                }
            };
            match event.unwrap().expect("it is open") {
                Event::Message { data, .. } => {
                    assert_eq!(data, echoes.to_string());
                    echoes += 1;
                }
                Event::Block { data, .. } => {
                    assert_eq!(&data, block.data());
                    blocks += 1;
                }
                _ => {}
            }
        }
        assert!(given_up > 0, "nothing was dropped");
        client.finish_async(MAX).await.unwrap()
    };
    assert_eq!(block_on(both(serve(&server, &block), joining)), ends());
}

#[test]
fn one_task_sends_while_another_receives() {
    let (server, block) = (bind(with_secret()), Block::new(1, bytes(10)));
    let joining = async {
        let client = Client::connect(config_for(&server)).unwrap();
        client.connected().await.unwrap();
        let sending = async {
            for number in 0..100 {
                client.send_message(format!("{number}")).unwrap();
                begin(std::future::pending::<()>()).await;
            }
        };
        let receiving = async {
            let mut echoes = 0;
            while echoes < 100 {
                let event = client.next_event().await.unwrap().expect("it is open");
                echoes += u32::from(matches!(event, Event::Message { .. }));
            }
        };
        both(sending, receiving).await;
        client.finish_async(MAX).await.unwrap()
    };
    assert_eq!(block_on(both(serve(&server, &block), joining)), ends());
}

#[test]
fn a_refusal_is_an_error_that_says_why() {
    let server = bind(with_secret());
    let credentials = Credentials::Secret { secret: Secret::from_bytes([8; 32]), identity: None };
    let connect = Connect::new(server.local_addr(), PROTOCOL_ID, credentials);
    let error = block_on(Client::connect(connect).unwrap().connected()).unwrap_err();
    let ConnectError::Failed(attempts) = &error else { panic!("{error:?}") };
    assert_eq!(attempts[0].server, server.local_addr());
    let refused = CloseReason::Refused(RefusalCode::Key).to_string();
    assert!(error.to_string().contains(&refused), "{error}");
    assert_eq!(server.poll().unwrap(), None, "no client is accepted");
}

#[test]
fn a_server_that_finishes_closes_its_connections() {
    let server = bind(with_secret());
    let client = Client::connect(config_for(&server)).unwrap();
    block_on(client.connected()).unwrap();
    let end = async {
        while let Some(event) = client.next_event().await.unwrap() {
            if let Event::Closed(reason) = event {
                return reason;
            }
        }
        panic!("it ended without a word");
    };
    let (finished, reason) = block_on(both(server.finish_async(MAX), end));
    finished.unwrap();
    let code = CloseCode::SHUTTING_DOWN;
    assert_eq!(reason, CloseReason::There { code, reason: String::new() });
}

#[test]
fn a_request_that_is_too_long_makes_no_client() {
    let address = "192.0.2.1:1".parse().unwrap();
    let mut config = ClientConfig::new(address, PROTOCOL_ID, Credentials::Open);
    config.request = vec![0; 401];
    let error = Client::connect(config).unwrap_err();
    assert!(matches!(error, ConnectError::Config(_)), "{error:?}");
}

#[cfg(feature = "tokio")]
mod on_tokio {
    use haulier::{Listen, ListenError, NetworkError};

    use super::*;

    fn serving() -> Server {
        Listen::bind("127.0.0.1:0").unwrap().on_tokio().start(with_secret()).unwrap()
    }

    /// One thread for both ends and both of their applications.
    #[tokio::test]
    async fn a_client_joins_and_leaves_well() {
        let (server, block) = (serving(), Block::new(1, bytes(1_000_000)));
        let connect = Connect::from(config_for(&server)).on_tokio();
        assert_eq!(both(serve(&server, &block), join(connect, &block)).await, ends());
    }

    #[tokio::test]
    async fn a_dropped_client_says_so_and_stops() {
        let server = serving();
        let client = Client::connect(Connect::from(config_for(&server)).on_tokio()).unwrap();
        client.connected().await.unwrap();
        drop(client);
        let reason = serve(&server, &Block::new(1, bytes(10))).await;
        assert_eq!(reason, ends().0);
    }

    #[test]
    fn outside_of_a_runtime_there_is_none_and_its_end_is_reported() {
        let listen = Listen::bind("127.0.0.1:0").unwrap().on_tokio();
        let error = listen.start(with_secret()).unwrap_err();
        assert!(matches!(error, ListenError::NoRuntime), "{error}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(async { serving() });
        drop(runtime);
        let error = server.wait(MAX).unwrap_err();
        assert!(matches!(error, NetworkError::Runtime), "{error}");
        assert!(block_on(server.next_event()).is_err());
    }
}
