//! One HTTP/1.1 exchange on one connection, with every size and wait bounded.
//!
//! There is no pool: a pooled connection that the peer closes under a request leaves it unknown
//! whether the request was acted on, and pools hide a retry of their own. The exchange owns its
//! connection; dropping it closes the connection.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::HeaderMap;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use crate::crash_point::CrashPoint;
use crate::host::Host;

/// A response, with as much of its body as was wanted.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: HeaderMap,
    /// The beginning of the body.
    pub body: Vec<u8>,
    /// Whether there was more, or the rest never arrived.
    pub truncated: bool,
}

/// Why no response arrived on a connection that stood.
#[derive(Debug)]
pub enum ExchangeError {
    /// The connection broke.
    Reset(hyper::Error),
    /// What arrived was not HTTP.
    Protocol(hyper::Error),
    /// The head of the response is larger than is read.
    Oversize(hyper::Error),
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset(error) => write!(f, "the connection broke: {error}"),
            Self::Protocol(error) => write!(f, "the answer is not HTTP: {error}"),
            Self::Oversize(error) => write!(f, "the answer's head is too large: {error}"),
        }
    }
}

impl std::error::Error for ExchangeError {}

impl From<hyper::Error> for ExchangeError {
    fn from(error: hyper::Error) -> Self {
        if error.is_parse_too_large() {
            Self::Oversize(error)
        } else if error.is_parse() || error.is_parse_status() {
            Self::Protocol(error)
        } else {
            Self::Reset(error)
        }
    }
}

/// Sends `request` on `stream` and reads the response's head. The body is left to
/// [`Exchange::read`], so that a caller can act on the status whatever becomes of the body.
///
/// `sent` is the crash point to pass once the whole request is written.
///
/// # Errors
///
/// [`ExchangeError`] if no response arrived.
pub async fn exchange<H, S>(
    host: &H,
    stream: S,
    request: Request<Full<Bytes>>,
    sent: Option<CrashPoint>,
) -> Result<Exchange<S>, ExchangeError>
where
    H: Host,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut requests, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut connection = Box::pin(connection);
    let (tell_written, mut written) = oneshot::channel();
    let request = request.map(|body| Tracked { body, tell: Some(tell_written) });
    let response = {
        let mut response = pin!(requests.send_request(request));
        let mut is_written = false;
        let mut is_closed = false;
        loop {
            tokio::select! {
                biased;
                response = &mut response => break response?,
                _ = &mut written, if !is_written => {
                    is_written = true;
                    if let Some(point) = sent {
                        host.at(point).await;
                    }
                }
                closed = &mut connection, if !is_closed => {
                    is_closed = true;
                    closed?;
                }
            }
        }
    };
    Ok(Exchange { response, connection })
}

/// A response whose body has not been read yet.
pub struct Exchange<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> {
    response: Response<Incoming>,
    connection: Pin<Box<hyper::client::conn::http1::Connection<TokioIo<S>, Tracked>>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> fmt::Debug for Exchange<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("response", &self.response).finish_non_exhaustive()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Exchange<S> {
    /// The status code.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    /// The header fields.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// Reads at most `bytes_max` bytes of the body until `deadline` resolves, then closes the
    /// connection. A body that breaks off is cut, not an error: the status has been received.
    pub async fn read(self, bytes_max: usize, deadline: impl Future<Output = ()> + Send) -> Answer {
        let (head, mut incoming) = self.response.into_parts();
        let mut connection = self.connection;
        let mut deadline = pin!(deadline);
        let mut body = Vec::new();
        let mut is_closed = false;
        let truncated = loop {
            let frame = tokio::select! {
                biased;
                frame = incoming.frame() => frame,
                () = &mut deadline => break true,
                _ = &mut connection, if !is_closed => {
                    is_closed = true;
                    continue;
                }
            };
            let Some(frame) = frame else { break false };
            let Ok(frame) = frame else { break true };
            if let Some(data) = frame.data_ref() {
                let room = bytes_max - body.len();
                body.extend_from_slice(&data[..data.len().min(room)]);
                if data.len() > room {
                    break true;
                }
            }
        };
        Answer { status: head.status.as_u16(), headers: head.headers, body, truncated }
    }
}

/// A request body that tells when hyper has taken the last of it.
struct Tracked {
    body: Full<Bytes>,
    tell: Option<oneshot::Sender<()>>,
}

impl Body for Tracked {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            // Nobody listens any more if the exchange was given up.
            let _ = tell.send(());
        }
    }
}
