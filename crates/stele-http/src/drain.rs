//! Bodies that a handler left unread: read and thrown away before the answer, so that the connection lives on.
//!
//! A server that answers and closes while the client still sends makes the client see a broken connection instead
//! of the answer, or makes its next request on that connection fail.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

/// Most bytes that are thrown away.
const MOST: usize = 256 * 1024;
/// Longest time spent on it.
const PATIENCE: Duration = Duration::from_millis(500);

/// The unread rest of a body, once whoever had the body let go of it.
#[derive(Clone, Default)]
pub(crate) struct Rest(Arc<Mutex<Option<Body>>>);

impl Rest {
    /// Reads the rest, if it is short; false if the connection cannot be used again.
    pub(crate) async fn drain(self) -> bool {
        let Some(mut body) = self.0.lock().expect("no panic under the lock").take() else { return true };
        let read = async {
            let mut total = 0;
            while let Some(Ok(frame)) = body.frame().await {
                total += frame.data_ref().map_or(0, Bytes::len);
                if total > MOST {
                    return false;
                }
            }
            body.is_end_stream()
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap_or(false)
    }
}

/// A body whose unread rest is kept.
struct Kept {
    body: Option<Body>,
    rest: Rest,
}

/// The body as it is, with a hold on what will be left of it.
pub(crate) fn keep(body: Body) -> (Body, Rest) {
    let rest = Rest::default();
    if body.is_end_stream() {
        return (body, rest);
    }
    (Body::new(Kept { body: Some(body), rest: rest.clone() }), rest)
}

impl HttpBody for Kept {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(&mut *body).poll_frame(context);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let unread = self.body.take().filter(|body| !body.is_end_stream());
        *self.rest.0.lock().expect("no panic under the lock") = unread;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_left_is_read_if_it_is_short() {
        let (body, rest) = keep(Body::from("left"));
        drop(body);
        assert!(rest.drain().await);
        let (body, rest) = keep(Body::from(vec![0; MOST + 1]));
        drop(body);
        assert!(!rest.drain().await);
    }

    #[tokio::test]
    async fn a_body_that_was_read_leaves_nothing() {
        let (body, rest) = keep(Body::from("all"));
        assert_eq!(body.collect().await.expect("read").to_bytes(), "all");
        assert!(rest.0.lock().expect("no panic").is_none());
    }
}
