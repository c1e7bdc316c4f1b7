//! The seam on bare turmoil: no fault, no fuse, no tap.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;
use hookproof_runtime::host::Host;
use hookproof_sim::wire::exchanges::{attempt, request, serves};
use turmoil::net::{TcpListener, TcpStream};

#[derive(Clone)]
struct Plain;

#[expect(clippy::disallowed_methods, reason = "it is an implementation of the seam")]
impl Host for Plain {
    type Stream = TcpStream;
    type Listener = TcpListener;

    const SIMULATED: bool = true;

    fn now(&self) -> Timestamp {
        let now = turmoil::since_epoch().unwrap_or_default().as_millis();
        Timestamp::from_millis(i64::try_from(now).unwrap_or(i64::MAX))
    }

    fn wall(&self) -> Timestamp {
        self.now()
    }

    fn entropy(&self) -> u64 {
        0
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(task);
    }

    fn sleep(&self, span: Millis) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(span.to_duration())
    }

    async fn resolve(&self, _name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::new(turmoil::lookup("receiver"), port)])
    }

    async fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        TcpStream::connect(to).await
    }

    async fn listen(&self, on: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(on).await
    }

    fn local_addr(listener: &TcpListener) -> io::Result<SocketAddr> {
        listener.local_addr()
    }

    async fn accept(&self, listener: &mut TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
        listener.accept().await
    }

    fn passes(&self, _point: CrashPoint) -> bool {
        false
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn commit_latency(&self) -> Millis {
        Millis::ZERO
    }
}

pub(super) async fn serve() -> turmoil::Result {
    serves(Plain).await.map_err(Into::into)
}

pub(super) async fn send(count: u32, answered: Arc<AtomicU32>) -> turmoil::Result {
    for number in 0..count {
        let request = request(number)?;
        super::latency(number).await;
        // As the sender does, in a task of its own.
        let (tell, told) = tokio::sync::oneshot::channel();
        Plain.spawn(async move { drop(tell.send(attempt(&Plain, request).await)) });
        assert_eq!(told.await?, Ok(202));
        answered.fetch_add(1, Ordering::Relaxed);
    }
    pending().await
}
