//! What the sender's process knows of its gates, seen by what it asks of its store.
//!
//! A permit is asked for just before its delivery is claimed, and given back just before the outcome is
//! written; an endpoint that has something due and is not asked for it has its gate closed. So a store
//! that passes everything on sees each of these, in the order in which they happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hookproof_core::classify::Signal;
use hookproof_core::delivery::{Committed, Delivery, Phase, Rejected, Step};
use hookproof_core::endpoint::EndpointStatus;
use hookproof_core::gate::{Breaker, StoredGate};
use hookproof_core::id::{DeliveryId, EndpointId};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use hookproof_sender::store::{Beside, Claimed, DueEndpoint, Store};

use super::host::SimHost;
use super::witness::{AttemptName, Moment, Witness};
use crate::fact::Fact;
use crate::sometimes::Sometimes;
use crate::tape::{Event as Seen, Question};

/// What is known of the gates of one life of the sender.
#[derive(Default)]
pub(super) struct Gates {
    /// Endpoints whose breaker is not closed: what is admitted there is a probe.
    probing: BTreeMap<EndpointId, bool>,
    /// Permits that are out.
    out: BTreeMap<AttemptName, Out>,
    /// Endpoints that the dispatcher has read the due deliveries of, and not claimed them yet. A
    /// signal from there comes after the permits that it is about to claim with.
    admitting: BTreeSet<EndpointId>,
    waiting: Vec<(EndpointId, Signalled)>,
    /// Endpoints with something due that the dispatcher has not asked for in this pass.
    unasked: BTreeSet<EndpointId>,
    began: Option<Timestamp>,
}

impl Gates {
    /// Whether what is admitted at an endpoint is a probe, as far as is known.
    pub(super) fn is_probing(&self, endpoint: &EndpointId) -> Option<bool> {
        self.probing.get(endpoint).copied()
    }
}

struct Out {
    endpoint: EndpointId,
    expires: Timestamp,
    is_probe: bool,
}

struct Signalled {
    out: Out,
    is_success: Option<bool>,
    local: Timestamp,
}

impl Witness {
    /// A new life of the sender knows nothing of permits.
    pub(super) fn sender_starts(&mut self, at: &Moment) {
        if !self.gates.out.is_empty() {
            self.reached(Sometimes::CrashedInFlight);
        }
        self.gates = Gates::default();
        self.tell(at.now, &Fact::Hindered { until: at.now });
    }

    fn pass_begins(&mut self, at: &Moment, due: &[DueEndpoint]) {
        self.pass_ends(at);
        self.gates.began = Some(at.now);
        for endpoint in due {
            let breaker = endpoint.gate.breaker.state;
            self.gates.probing.entry(endpoint.id.clone()).or_insert(!is_closed(breaker));
            if endpoint.is_due {
                self.gates.unasked.insert(endpoint.id.clone());
            }
        }
    }

    /// Whatever was due and not asked for was held back by its gate until now.
    fn pass_ends(&mut self, at: &Moment) {
        self.gates.admitting.clear();
        for (_, signalled) in std::mem::take(&mut self.gates.waiting) {
            self.signalled(at, &signalled);
        }
        let Some(until) = self.gates.began.take() else { return };
        for endpoint in std::mem::take(&mut self.gates.unasked) {
            let endpoint = self.names.endpoint(endpoint.as_str());
            self.tell(at.now, &Fact::Deferred { endpoint, until });
        }
    }

    fn asked_for(&mut self, endpoint: &EndpointId) {
        self.gates.unasked.remove(endpoint);
        self.gates.admitting.insert(endpoint.clone());
    }

    fn admitted(&mut self, at: &Moment, policy: &Policy, claims: &[Delivery]) {
        for claim in claims {
            let Phase::InFlight { attempt, started_at, lease_until, .. } = claim.phase else {
                continue;
            };
            let endpoint = claim.endpoint_id.clone();
            let fact = Fact::Admitted {
                endpoint: self.names.endpoint(endpoint.as_str()),
                local: started_at,
                expires: lease_until,
                rule: &policy.gate,
                epoch: u64::from(at.life.number),
            };
            self.tell(at.now, &fact);
            let is_probe = self.gates.probing.get(&endpoint).copied().unwrap_or(false);
            let name = AttemptName { delivery: claim.id.as_str().to_owned(), number: attempt };
            self.gates.out.insert(name, Out { endpoint, expires: lease_until, is_probe });
        }
        self.pass_ends(at);
    }

    /// A permit is given back; only the first time counts.
    fn given_back(&mut self, at: &Moment, name: &AttemptName, is_success: Option<bool>) {
        let Some(out) = self.gates.out.remove(name) else { return };
        let endpoint = out.endpoint.clone();
        let signalled = Signalled { out, is_success, local: at.local };
        if self.gates.admitting.contains(&endpoint) {
            self.gates.waiting.push((endpoint, signalled));
        } else {
            self.signalled(at, &signalled);
        }
    }

    fn signalled(&mut self, at: &Moment, signalled: &Signalled) {
        let Signalled { out, is_success, local } = signalled;
        let endpoint = self.names.endpoint(out.endpoint.as_str());
        let Out { expires, is_probe, .. } = *out;
        let (is_success, local) = (*is_success, *local);
        match is_success {
            Some(false) if is_probe => self.reached(Sometimes::ProbeFailed),
            None if is_probe => self.reached(Sometimes::ProbeNeither),
            _ => {}
        }
        let fact = Fact::Signalled { endpoint, is_success, is_probe, expires, local };
        self.tell(at.now, &fact);
    }

    fn gate_is(&mut self, endpoint: &EndpointId, gate: Option<&StoredGate>) {
        if let Some(gate) = gate {
            self.reached_by_breaker(endpoint, !is_closed(gate.breaker.state));
            self.gates.probing.insert(endpoint.clone(), !is_closed(gate.breaker.state));
        }
    }
}

fn is_closed(breaker: Breaker) -> bool {
    matches!(breaker, Breaker::Closed { .. })
}

/// A store that tells the witness of what it is asked.
#[derive(Clone)]
pub(super) struct Watched<S> {
    inner: S,
    host: SimHost,
    policy: Arc<Policy>,
}

impl<S: Store> Watched<S> {
    pub(super) fn new(inner: S, host: SimHost, policy: &Policy) -> Self {
        Self { inner, host, policy: Arc::new(policy.clone()) }
    }

    /// The tape has what the store was asked, and what it said.
    async fn asks(
        &self,
        question: Question,
        answer: impl Future<Output = Result<Vec<Delivery>, StoreError>>,
    ) -> Result<Vec<Delivery>, StoreError> {
        let tape = self.host.stage.journal.tape();
        let number = tape.asks(question);
        let found = answer.await?;
        tape.see(Seen::Hears(number, found.iter().map(|delivery| delivery.id.clone()).collect()));
        Ok(found)
    }

    /// The tape has what the sender is told of a step.
    fn answered(&self, id: &DeliveryId, answer: Result<&Delivery, &Rejected>) {
        let answer = answer.cloned().map_err(Clone::clone);
        self.host.stage.journal.tape().see(Seen::Answered { id: id.clone(), answer });
    }

    fn witness<T>(&self, tell: impl FnOnce(&mut Witness, &Moment) -> T) -> T {
        let at = self.host.moment();
        tell(&mut self.host.stage.witness(), &at)
    }
}

impl<S: Store> Store for Watched<S> {
    async fn due_endpoints(&self, now: Timestamp) -> Result<Vec<DueEndpoint>, StoreError> {
        let due = self.inner.due_endpoints(now).await?;
        self.witness(|witness, at| witness.pass_begins(at, &due));
        Ok(due)
    }

    async fn due_deliveries(
        &self,
        endpoint: EndpointId,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let question = Question::Due { endpoint: endpoint.clone(), now, limit };
        let due =
            self.asks(question, self.inner.due_deliveries(endpoint.clone(), now, limit)).await;
        self.witness(|witness, _| witness.asked_for(&endpoint));
        due
    }

    async fn claim(
        &self,
        steps: Vec<Step>,
        gates: Vec<(EndpointId, StoredGate)>,
    ) -> Result<Vec<Result<Claimed, Rejected>>, StoreError> {
        let wanted: Vec<Delivery> = steps.iter().map(|step| step.next().clone()).collect();
        self.witness(|witness, at| witness.admitted(at, &self.policy, &wanted));
        let claims = self.inner.claim(steps, gates).await;
        let is_made = |index: usize| {
            claims.as_ref().is_ok_and(|claims| claims.get(index).is_some_and(Result::is_ok))
        };
        if let Ok(claims) = &claims {
            for (delivery, claim) in wanted.iter().zip(claims) {
                self.answered(&delivery.id, claim.as_ref().map(|claimed| &claimed.delivery));
            }
        }
        for (index, delivery) in wanted.iter().enumerate() {
            let delivery_id = delivery.id.as_str().to_owned();
            let name = AttemptName { delivery: delivery_id, number: delivery.attempts };
            if is_made(index) {
                self.host.stage.attempt_follows(name);
            } else {
                self.witness(|witness, at| witness.given_back(at, &name, None));
            }
        }
        claims
    }

    async fn commit(
        &self,
        step: Step,
        beside: Beside,
    ) -> Result<Result<Committed, Rejected>, StoreError> {
        // What is unknown is no signal: its permit ended with its process or by itself.
        if let Some(record) = step.record().filter(|record| record.outcome != Outcome::Unknown) {
            let is_success = match self.policy.classification.judge(&record.outcome).signal {
                Signal::Success => Some(true),
                Signal::Failure => Some(false),
                Signal::Neither => None,
            };
            let delivery = step.next();
            let name =
                AttemptName { delivery: delivery.id.as_str().to_owned(), number: record.attempt };
            self.witness(|witness, at| {
                witness.given_back(at, &name, is_success);
                witness.gate_is(&delivery.endpoint_id, beside.gate.as_ref());
            });
        }
        let id = step.next().id.clone();
        let answer = self.inner.commit(step, beside).await;
        if let Ok(answer) = &answer {
            self.answered(&id, answer.as_ref().map(|committed| &committed.delivery));
        }
        answer
    }

    async fn set_endpoint_status(
        &self,
        id: EndpointId,
        status: EndpointStatus,
        gate: Option<StoredGate>,
    ) -> Result<bool, StoreError> {
        self.witness(|witness, _| witness.gate_is(&id, gate.as_ref()));
        self.inner.set_endpoint_status(id, status, gate).await
    }

    async fn leased(&self, until: Timestamp, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        self.asks(Question::Leased { until, limit }, self.inner.leased(until, limit)).await
    }

    hookproof_sender::pass_on! { |this, _method| this.inner =>
        create_endpoint, endpoints, gate, set_secrets, delete_endpoint, orphans, publish, event,
        aged_deliveries, commit_each, next_lease_end, delivery, deliveries, history,
        totals, pending_notices, notice_sent
    }
}
