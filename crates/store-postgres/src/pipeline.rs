//! Requests sent one behind the other on one connection, without waiting for answers in between.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// A request that was sent, and its answer some time later.
pub(crate) enum Sent<'a, T> {
    Answered(T),
    Waiting(Pin<Box<dyn Future<Output = T> + Send + 'a>>),
}

/// Sends a request: the driver puts it on its way when its future is first polled, so requests travel in the order
/// of these calls.
pub(crate) async fn send<'a, T>(request: impl Future<Output = T> + Send + 'a) -> Sent<'a, T> {
    let mut request: Pin<Box<dyn Future<Output = T> + Send + 'a>> = Box::pin(request);
    match poll_fn(|context| Poll::Ready(request.as_mut().poll(context))).await {
        Poll::Ready(answer) => Sent::Answered(answer),
        Poll::Pending => Sent::Waiting(request),
    }
}

impl<T> Sent<'_, T> {
    /// The answer.
    pub(crate) async fn answer(self) -> T {
        match self {
            Self::Answered(answer) => answer,
            Self::Waiting(request) => request.await,
        }
    }
}
