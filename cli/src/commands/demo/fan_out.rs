//! The same work for many items, several at once.

use std::sync::{Arc, Mutex, PoisonError};

use hookproof_runtime::host::Host as _;
use hookproof_runtime::tokio_host::TokioHost;
use tokio::sync::mpsc;

/// Does `work` for each item, `at_once` at a time and in the order of the items; hands on the
/// results as they come. Nothing more is begun once the receiver is dropped.
pub(super) fn fan_out<T, R, F>(
    items: impl IntoIterator<Item = T>,
    at_once: usize,
    work: impl Fn(T) -> F + Clone + Send + 'static,
) -> mpsc::Receiver<R>
where
    T: Send + 'static,
    R: Send + 'static,
    F: Future<Output = R> + Send + 'static,
{
    let items: Vec<_> = items.into_iter().collect();
    let items = Arc::new(Mutex::new(items.into_iter()));
    let (results, received) = mpsc::channel(at_once);
    for _ in 0..at_once {
        let (items, work, results) = (items.clone(), work.clone(), results.clone());
        TokioHost.spawn(async move {
            loop {
                let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some(item) = next else { return };
                if results.send(work(item).await).await.is_err() {
                    return;
                }
            }
        });
    }
    received
}
