//! A store that fails the calls it is told to, and counts all of them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};

use hookproof_core::delivery::{Committed, Rejected, Step};
use hookproof_core::outcome::Outcome;
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::store::{Beside, DueEndpoint, Store};

use crate::running::eventually;

/// Calls go by the names of the methods, but for commits: `record N` is what came of attempt N,
/// `settle` is a claim that is over, and `commit` is any other.
#[derive(Clone)]
pub(crate) struct FailingStore {
    inner: SqliteStore,
    calls: Arc<Mutex<Calls>>,
}

#[derive(Default)]
struct Calls {
    failing: BTreeMap<String, RangeInclusive<usize>>,
    counts: BTreeMap<String, usize>,
    looked_at: Option<Timestamp>,
}

impl FailingStore {
    /// Fails nothing.
    pub(crate) fn new(inner: SqliteStore) -> Self {
        Self { inner, calls: Arc::default() }
    }

    /// Fails the calls of one name with these numbers, counted from 1.
    pub(crate) fn failing(self, name: &str, nths: RangeInclusive<usize>) -> Self {
        self.with(|calls| calls.failing.insert(name.to_owned(), nths));
        self
    }

    /// How many calls of one name there were.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.with(|calls| calls.counts.get(name).copied().unwrap_or(0))
    }

    pub(crate) async fn called(&self, name: &str, count: usize) {
        let what = format!("{count} calls of {name}");
        eventually(&what, || async { (self.count(name) >= count).then_some(()) }).await;
    }

    /// Waits until the dispatcher has looked at what is due at that time or later.
    pub(crate) async fn looked(&self, at: Timestamp) {
        eventually("the dispatcher looks", || async {
            self.with(|calls| calls.looked_at.filter(|looked| *looked >= at)).map(drop)
        })
        .await;
    }

    fn with<T>(&self, work: impl FnOnce(&mut Calls) -> T) -> T {
        work(&mut self.calls.lock().expect("no test panics in here"))
    }

    fn call(&self, name: &str) -> Result<(), StoreError> {
        self.with(|calls| {
            let count = calls.counts.entry(name.to_owned()).or_default();
            *count += 1;
            match calls.failing.get(name) {
                Some(nths) if nths.contains(count) => {
                    Err(StoreError::NotCommitted(format!("call {count} of {name} is to fail")))
                }
                _ => Ok(()),
            }
        })
    }
}

fn name_of(step: &Step) -> String {
    match step.record() {
        Some(record) if record.outcome == Outcome::Unknown => "settle".to_owned(),
        Some(record) => format!("record {}", record.attempt),
        None => "commit".to_owned(),
    }
}

impl Store for FailingStore {
    async fn due_endpoints(&self, now: Timestamp) -> Result<Vec<DueEndpoint>, StoreError> {
        self.call("due_endpoints")?;
        self.with(|calls| calls.looked_at = Some(now));
        self.inner.due_endpoints(now).await
    }

    async fn commit(
        &self,
        step: Step,
        beside: Beside,
    ) -> Result<Result<Committed, Rejected>, StoreError> {
        self.call(&name_of(&step))?;
        self.inner.commit(step, beside).await
    }

    hookproof_sender::pass_on! { |this, method| { this.call(method)?; &this.inner } =>
        create_endpoint, endpoints, gate, set_endpoint_status, set_secrets, delete_endpoint, orphans, publish,
        event, due_deliveries, aged_deliveries, claim, commit_each, leased, next_lease_end,
        delivery, deliveries, history, totals, pending_notices, notice_sent
    }
}
