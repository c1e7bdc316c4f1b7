//! What the sender's process knows of its gates, seen by what it tells its host and asks of its store.
//!
//! A gate's host is told of each permit and of each end of one, in the order in which they happen. What is
//! claimed without a permit is seen by the store, and so is an endpoint that has something due and is not
//! asked for it: its gate is closed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hookproof_core::delivery::{Committed, Delivery, Phase, Rejected, Step};
use hookproof_core::dispatch::Wanted;
use hookproof_core::endpoint::EndpointStatus;
use hookproof_core::gate::{Breaker, PermitId, StoredGate};
use hookproof_core::id::{DeliveryId, EndpointId};
use hookproof_core::outcome::Outcome;
use hookproof_core::policy::Policy;
use hookproof_core::time::Timestamp;
use hookproof_runtime::database::StoreError;
use hookproof_runtime::decision::Asked;
use hookproof_sender::store::{Beside, Claimed, DueEndpoint, Store};

use super::host::SimHost;
use super::witness::{AttemptName, Moment, Witness};
use crate::fact::{Fact, is_success};
use crate::sometimes::Sometimes;
use crate::tape::{Event as Seen, Question};

/// What is known of the gates of one life of the sender.
#[derive(Default)]
pub(super) struct Gates {
    /// Endpoints whose breaker is not closed: what is admitted there is a probe.
    probing: BTreeMap<EndpointId, bool>,
    /// Permits that are out.
    out: BTreeMap<AttemptName, Out>,
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
    /// `None` if nobody gave it out.
    permit: Option<PermitId>,
    expires: Timestamp,
    is_probe: bool,
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
        let Some(until) = self.gates.began.take() else { return };
        for endpoint in std::mem::take(&mut self.gates.unasked) {
            let endpoint = self.names.endpoint(endpoint.as_str());
            self.tell(at.now, &Fact::Deferred { endpoint, until });
        }
    }

    fn asked_for(&mut self, endpoint: &EndpointId) {
        self.gates.unasked.remove(endpoint);
    }

    /// A gate was asked.
    pub(super) fn gate_asked(&mut self, at: &Moment, endpoint: &EndpointId, asked: &Asked<'_>) {
        match *asked {
            Asked::Want { result: Wanted::Claim(step, permit), .. } => {
                self.admitted(at, step.next(), Some(permit.id()), permit.probe);
            }
            Asked::Learn { permit, lesson, now, .. } => {
                let is_it = |(_, out): &(&AttemptName, &Out)| {
                    out.permit == Some(permit) && out.endpoint == *endpoint
                };
                let Some((name, _)) = self.gates.out.iter().find(is_it) else { return };
                let name = *name;
                self.given_back(at, name, is_success(lesson.signal), now);
            }
            Asked::Reset => {
                let endpoint = self.names.endpoint(endpoint.as_str());
                self.tell(at.now, &Fact::Forgiven { endpoint });
            }
            _ => {}
        }
    }

    /// Claims are about to be written; whatever nobody gave a permit for begins all the same.
    fn claimed(&mut self, at: &Moment, claims: &[Delivery]) {
        for claim in claims {
            let name = self.attempt(claim.id.as_str(), claim.attempts);
            if !self.gates.out.contains_key(&name) {
                let is_probe = self.gates.is_probing(&claim.endpoint_id).unwrap_or(false);
                self.admitted(at, claim, None, is_probe);
            }
        }
        self.pass_ends(at);
    }

    fn admitted(
        &mut self,
        at: &Moment,
        claim: &Delivery,
        permit: Option<PermitId>,
        is_probe: bool,
    ) {
        let Phase::InFlight { started_at, lease_until, .. } = claim.phase else { return };
        let rule = self.policy.gate.clone();
        let fact = Fact::Admitted {
            endpoint: self.names.endpoint(claim.endpoint_id.as_str()),
            local: started_at,
            expires: lease_until,
            rule: &rule,
            epoch: u64::from(at.life.number),
        };
        self.tell(at.now, &fact);
        let endpoint = claim.endpoint_id.clone();
        let out = Out { endpoint, permit, expires: lease_until, is_probe };
        let name = self.attempt(claim.id.as_str(), claim.attempts);
        self.gates.out.insert(name, out);
    }

    /// A permit is given back; only the first time counts.
    fn given_back(
        &mut self,
        at: &Moment,
        name: AttemptName,
        is_success: Option<bool>,
        local: Timestamp,
    ) {
        let Some(out) = self.gates.out.remove(&name) else { return };
        let endpoint = self.names.endpoint(out.endpoint.as_str());
        let Out { expires, is_probe, .. } = out;
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
        self.witness(|witness, at| witness.claimed(at, &wanted));
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
            if is_made(index) {
                self.host.stage.attempt_follows(delivery.id.as_str(), delivery.attempts);
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
            let judgement = self.policy.classification.judge(&record.outcome);
            let delivery = step.next();
            self.witness(|witness, at| {
                let name = witness.attempt(delivery.id.as_str(), record.attempt);
                witness.given_back(at, name, is_success(judgement.signal), at.local);
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
