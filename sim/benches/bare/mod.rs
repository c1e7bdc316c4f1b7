//! An exchange as it is without the wire world: bare hyper on bare turmoil, and the programs' own client
//! and server there.

mod plain;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hookproof_sim::wire::exchanges::{BODIES, request, simulation};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use turmoil::net::{TcpListener, TcpStream};

/// Lets so many exchanges of bare hyper happen, one after the other, each on a connection of its own.
pub(crate) fn exchanges(count: u32) -> u32 {
    run(count, serve, send)
}

/// The same with the programs' own client and server, on a host without faults, fuse and tap.
pub(crate) fn by_the_programs(count: u32) -> u32 {
    run(count, plain::serve, plain::send)
}

fn run<R, S>(
    count: u32,
    serve: impl Fn() -> R + 'static,
    send: impl Fn(u32, Arc<AtomicU32>) -> S + 'static,
) -> u32
where
    R: Future<Output = turmoil::Result> + 'static,
    S: Future<Output = turmoil::Result> + 'static,
{
    let answered = Arc::new(AtomicU32::new(0));
    let mut sim = simulation();
    sim.host("receiver", serve);
    let counter = answered.clone();
    sim.host("sender", move || send(count, counter.clone()));
    while answered.load(Ordering::Relaxed) < count {
        sim.step().expect("nothing goes wrong");
    }
    count
}

/// The latency that the wire world draws: as many ticks in all of them.
#[expect(clippy::disallowed_methods, reason = "what is measured goes around the seam")]
async fn latency(number: u32) {
    tokio::time::sleep(Duration::from_millis(u64::from(number % 4) * 10)).await;
}

#[expect(clippy::disallowed_methods, reason = "what is measured goes around the seam")]
async fn serve() -> turmoil::Result {
    let listener = TcpListener::bind(("0.0.0.0", 80)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service_fn(respond))
                .await;
            served.expect("a connection ends well");
        });
    }
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.expect("a whole body").to_bytes();
    assert_eq!(body, BODIES.0);
    let mut response = Response::new(Full::new(Bytes::from_static(BODIES.1)));
    *response.status_mut() = StatusCode::ACCEPTED;
    Ok(response)
}

#[expect(clippy::disallowed_methods, reason = "what is measured goes around the seam")]
async fn send(count: u32, answered: Arc<AtomicU32>) -> turmoil::Result {
    for number in 0..count {
        let request = request(number)?;
        latency(number).await;
        let stream = TcpStream::connect(("receiver", 80)).await?;
        let (mut requests, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let response = requests.send_request(request).await?;
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        assert_eq!(response.into_body().collect().await?.to_bytes(), BODIES.1);
        answered.fetch_add(1, Ordering::Relaxed);
    }
    std::future::pending().await
}
