//! The connection loop: header limits, timeouts for slow clients, and a drain that ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;

/// Most connections at once; further ones wait in the listen queue.
const CONNECTIONS: usize = 8_192;
/// Longest time for the head of a request, and for the next request on an open connection.
const HEAD: Duration = Duration::from_secs(60);
/// Longest time that a client may take nothing of an answer.
const STALLED: Duration = Duration::from_secs(60);
/// Most bytes of the head of a request.
const HEAD_BYTES: usize = 64 * 1024;
/// Most header lines of a request.
const HEADERS: usize = 100;
/// Longest time that requests under way get to end.
const DRAIN: Duration = Duration::from_secs(20);

/// Serves until `stop` is done, then lets requests under way end.
pub async fn serve(listener: TcpListener, router: Router, stop: impl Future<Output = ()>) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut stop = std::pin::pin!(stop);
    loop {
        // A full house must not keep the server from stopping, so both waits end with `stop`.
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = &mut stop => break,
        };
        match accepted {
            Ok((stream, place)) => {
                let connection = connect(stream, router.clone());
                let watched = graceful.watch(connection);
                tokio::spawn(async move {
                    // What a client does to its own connection is no error of the server's.
                    let _ = watched.await;
                    drop(place);
                });
            }
            Err(error) => wait_out(&error).await,
        }
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = tokio::time::sleep(DRAIN) => tracing::warn!("some requests did not end in time and were cut off"),
    }
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

type Stream = Pin<Box<TimeoutStream<TcpStream>>>;
type Connection = hyper::server::conn::http1::Connection<TokioIo<Stream>, TowerToHyperService<Router>>;

fn connect(stream: TcpStream, router: Router) -> Connection {
    // Answers are small and whole; waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(STALLED));
    hyper::server::conn::http1::Builder::new()
        // A client that has sent its request may close its side and still wants the answer.
        .half_close(true)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEADERS)
        .serve_connection(TokioIo::new(Box::pin(stream)), TowerToHyperService::new(router))
}

/// A connection that broke before it was accepted concerns nobody; a lack of file handles passes.
async fn wait_out(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        return;
    }
    tracing::warn!(error = error as &dyn std::error::Error, "no connection could be accepted");
    tokio::time::sleep(Duration::from_millis(100)).await;
}
