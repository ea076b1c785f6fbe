//! Bodies that are made part by part: nothing is made before the client can take it, so a slow one costs one part.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame};

/// The making of a part, with what the next one is made from; `None` ends the body.
pub type Making<S> = Pin<Box<dyn Future<Output = Option<(Bytes, S)>> + Send>>;

/// The same, where a part may turn out to be impossible: then the connection is cut, so that nobody takes what was sent
/// for the whole.
pub type MakingOrNot<S> = Pin<Box<dyn Future<Output = Result<Option<(Bytes, S)>, BoxError>> + Send>>;

struct Parts<S> {
    next: fn(S) -> Making<S>,
    making: Option<Making<S>>,
}

struct BreakableParts<S> {
    next: fn(S) -> MakingOrNot<S>,
    making: Option<MakingOrNot<S>>,
}

/// The body whose parts `next` makes, beginning with `state`.
pub fn body<S: Send + 'static>(state: S, next: fn(S) -> Making<S>) -> Body {
    Body::new(Parts { next, making: Some(next(state)) })
}

/// An answer of server-sent events, which nobody on the way keeps or holds back.
pub fn event_stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The body whose parts `next` makes, beginning with `state`; an error cuts the connection.
pub fn breakable<S: Send + 'static>(state: S, next: fn(S) -> MakingOrNot<S>) -> Body {
    Body::new(BreakableParts { next, making: Some(next(state)) })
}

impl<S> HttpBody for BreakableParts<S> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(making) = &mut self.making else { return Poll::Ready(None) };
        let made = std::task::ready!(making.as_mut().poll(context));
        let next = self.next;
        match made {
            Ok(Some((part, state))) => {
                self.making = Some(next(state));
                Poll::Ready(Some(Ok(Frame::data(part))))
            }
            Ok(None) => {
                self.making = None;
                Poll::Ready(None)
            }
            Err(error) => {
                self.making = None;
                Poll::Ready(Some(Err(error)))
            }
        }
    }
}

impl<S> HttpBody for Parts<S> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(making) = &mut self.making else { return Poll::Ready(None) };
        let made = std::task::ready!(making.as_mut().poll(context));
        let (part, making) = match made {
            Some((part, state)) => (Some(part), Some((self.next)(state))),
            None => (None, None),
        };
        self.making = making;
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn parts_come_in_order_until_there_is_none() {
        let count =
            body(0u8, |n| Box::pin(async move { (n < 3).then(|| (Bytes::from(vec![b'a' + n]), n + 1)) }));
        assert_eq!(count.collect().await.expect("it ends").to_bytes(), "abc");
    }
}
