//! What is due becomes attempts: gates are asked first, then rows are claimed.

use std::collections::BTreeSet;

use hookproof_core::delivery::{Ctx, Input, Phase};
use hookproof_core::dispatch::{self, Places, Wanted};
use hookproof_core::gate::{DeferReason, Gate, Permit};
use hookproof_core::outcome::{Failure, Outcome};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::crash_point::CrashPoint;

use super::{Attempt, Claim, STORE_PAUSE, Step};
use crate::fact::{EndpointNo, Fact};
use crate::model::hosts::Process;
use crate::model::trouble::Track;
use crate::model::world::{self, World};
use crate::sometimes::Sometimes;
use crate::zoo::SenderMutant;

impl World<'_> {
    /// Settles what is over, claims what is due and admitted, and plans the next pass.
    pub(super) fn pass(&mut self, process: Process) {
        if self.sender(process).next_pass.is_none_or(|next| next > self.now) {
            // Another pass came sooner and planned its own successor.
            return;
        }
        self.sender(process).next_pass = None;
        self.may_pause(process);
        if self.hosts.get(process).paused_until.is_some() {
            self.pass_at(process, self.now);
            return;
        }
        if self.senders.len() > 1 {
            self.follow_store(process);
            self.claim_shards(process);
        }
        if self.is_sender(SenderMutant::WatermarkScan) {
            self.fan_out_above_watermark(process);
        }
        let local = self.local(process);
        self.settle_expired(process, local);
        let mut claims = Vec::new();
        let mut wake = self.end_what_is_too_old(process, local);
        let mut endpoints = self.due_endpoints(process, local);
        if self.is_sender(SenderMutant::FirstComeFirstServed) {
            endpoints.sort_by_key(|endpoint| self.store.due(*endpoint).first().copied());
        } else {
            endpoints.sort_by_key(|endpoint| self.under_way(process, *endpoint));
        }
        let mut to_share = endpoints.len();
        for endpoint in endpoints {
            let share = self.share(process, endpoint, claims.len(), to_share);
            to_share -= 1;
            let next = self.want(process, endpoint, local, share, &mut claims);
            wake = wake.into_iter().chain(next).min();
        }
        if !claims.is_empty() && !self.passes(process, CrashPoint::StoreExecuted) {
            let step = world::Step::Sender(Step::ClaimsCommit(claims));
            match self.is_sender(SenderMutant::SendBeforeClaim) {
                true => self.after(Millis::ZERO, process, step),
                false => self.commits(process, step),
            }
        }
        self.plan_next_pass(process, local, wake);
    }

    fn plan_next_pass(&mut self, process: Process, local: Timestamp, wake: Option<Timestamp>) {
        if !self.hosts.get(process).is_up {
            return;
        }
        let mut wake = wake;
        let mine: Vec<EndpointNo> =
            self.store.endpoint_numbers().filter(|e| self.owns(process, *e)).collect();
        for endpoint in &mine {
            let due = self.store.due(*endpoint);
            let row = self.store.endpoint(*endpoint);
            let next = due.range((local.plus(Millis::new(1)), 0)..).next();
            if let Some((at, _)) = next.filter(|_| row.is_enabled) {
                wake = wake.into_iter().chain([*at]).min();
            }
        }
        if !self.is_sender(SenderMutant::InFlightIgnored) {
            // What ended before and is still there belongs to an attempt of this process, whose end
            // wakes it, or to another process.
            let next = self.store.leased().range((local.plus(Millis::new(1)), 0)..).next();
            let next_lease = next.map(|(at, _)| at.plus(Millis::new(1)));
            wake = wake.into_iter().chain(next_lease).min();
        }
        let mut at = wake.map(|wake| self.true_time(process, wake.max(local.plus(Millis::new(1)))));
        if self.senders.len() > 1 && !self.store.is_settled() {
            // Leases are renewed in time, and those of others are taken when they end.
            let renew = self.now.plus(Millis::new(self.scenario.shard_lease.get() / 3));
            at = at.into_iter().chain([renew]).min();
        }
        if let Some(at) = at {
            self.pass_at(process, at);
        }
    }

    fn settle_expired(&mut self, process: Process, local: Timestamp) {
        if self.is_sender(SenderMutant::InFlightIgnored) {
            return;
        }
        let own = self.own_attempts(process);
        let expired: Vec<usize> = self
            .store
            .leased_until(local)
            .filter(|row| self.owns(process, self.store.rows[*row].route.endpoint))
            .filter(|row| !own.contains(&(*row, self.store.rows[*row].state.attempts)))
            .collect();
        for row in expired {
            self.settle(process, row, Input::LeaseExpired);
        }
    }

    /// The attempts that this process has under way: no clock tells it that they are over.
    fn own_attempts(&self, process: Process) -> BTreeSet<(usize, u32)> {
        if self.is_sender(SenderMutant::LeaseShorterThanTimeout) {
            return BTreeSet::new();
        }
        let sender = &self.senders[process.number()];
        let under_way = sender.attempts.values().map(|attempt| (attempt.row, attempt.number));
        under_way.chain(sender.recording.iter().copied()).collect()
    }

    /// Ends what became too old while it waited, whatever its gate says; tells when the next may.
    fn end_what_is_too_old(&mut self, process: Process, local: Timestamp) -> Option<Timestamp> {
        let age_max = self.understood.life.age_max?;
        let policy = self.understood.clone();
        let mut next: Option<Timestamp> = None;
        for endpoint in self.store.endpoint_numbers() {
            if !self.store.endpoint(endpoint).is_enabled || !self.owns(process, endpoint) {
                continue;
            }
            let rows: Vec<usize> = self.store.due(endpoint).iter().map(|(_, row)| *row).collect();
            for row in rows {
                let stored = self.store.rows[row].state.clone();
                let too_old_at = stored.created_at.plus(age_max).plus(Millis::new(1));
                if local < too_old_at {
                    next = next.into_iter().chain([too_old_at]).min();
                    continue;
                }
                let ctx = Ctx { now: local, entropy: 0, policy: &policy };
                let expire = |gate: &mut Gate| dispatch::expire(gate, &stored, ctx);
                let step = self.with_gate(process, endpoint, expire);
                if let Ok(committed) = step.and_then(|step| step.onto(&stored)) {
                    self.write(process, row, &committed, None, false);
                }
            }
        }
        next
    }

    /// The endpoints of this process that take attempts and have something due.
    fn due_endpoints(&self, process: Process, local: Timestamp) -> Vec<EndpointNo> {
        self.store
            .endpoint_numbers()
            .filter(|endpoint| {
                let first = self.store.due(*endpoint).first();
                first.is_some_and(|(due, _)| *due <= local)
                    && self.store.endpoint(*endpoint).is_enabled
                    && self.owns(process, *endpoint)
            })
            .collect()
    }

    pub(super) fn under_way(&self, process: Process, endpoint: EndpointNo) -> usize {
        let attempts = &self.senders[process.number()].attempts;
        attempts.values().filter(|attempt| attempt.route.endpoint == endpoint).count()
    }

    /// How many attempts an endpoint may begin.
    fn share(
        &mut self,
        process: Process,
        endpoint: EndpointNo,
        wanted: usize,
        to_share: usize,
    ) -> usize {
        let taken = self.senders[process.number()].attempts.len() + wanted;
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let attempts_max = self.scenario.places;
        let places = Places { attempts_max, taken: count(taken), to_share: count(to_share) };
        let is_served = self.under_way(process, endpoint) > 0;
        let whole = Places { to_share: 1, ..places };
        if count(self.store.due(endpoint).len()) > whole.share(is_served) {
            self.sometimes(Sometimes::PlacesShort);
        }
        let share = match self.is_sender(SenderMutant::FirstComeFirstServed) {
            true => whole.share(false),
            false => places.share(is_served),
        };
        usize::try_from(share).unwrap_or(usize::MAX)
    }

    /// Adds the claims that one endpoint's gate admits; tells when to look at it again.
    fn want(
        &mut self,
        process: Process,
        endpoint: EndpointNo,
        local: Timestamp,
        share: usize,
        claims: &mut Vec<Claim>,
    ) -> Option<Timestamp> {
        if self.senders[process.number()].flaw.stuck.contains(&endpoint) {
            return None;
        }
        let policy = self.understood.clone();
        let renews = !self.is_sender(SenderMutant::LeaseShorterThanTimeout);
        let room = self.with_gate(process, endpoint, |gate| {
            // Every attempt gives its permit back when it ends: until then it is under way, whatever
            // the clock has been set to.
            if renews {
                gate.renew(local, policy.lease());
            }
            gate.room(&policy.gate, local)
        });
        let room = match room {
            Ok(room) => usize::try_from(room).unwrap_or(usize::MAX).min(share),
            Err((until, why)) => {
                return self.deferred(process, endpoint, local, until, why, claims);
            }
        };
        let rows: Vec<usize> = self
            .store
            .due_by(endpoint, local)
            .filter(|row| !self.senders[process.number()].flaw.lost.contains(row))
            .take(room)
            .collect();
        for row in rows {
            if let Some(until) = self.want_row(process, endpoint, local, row, claims) {
                return Some(until);
            }
        }
        None
    }

    fn want_row(
        &mut self,
        process: Process,
        endpoint: EndpointNo,
        local: Timestamp,
        row: usize,
        claims: &mut Vec<Claim>,
    ) -> Option<Timestamp> {
        let policy = self.understood.clone();
        let stored = self.store.rows[row].state.clone();
        let ctx = Ctx { now: local, entropy: 0, policy: &policy };
        let epoch = self.store.endpoint(endpoint).shard.epoch;
        match self.with_gate(process, endpoint, |gate| dispatch::want(gate, &stored, ctx)) {
            Wanted::Claim(step, permit) => {
                self.admitted(endpoint, local, permit.expires);
                claims.push(Claim { row, step, permit: Some(permit), epoch });
                None
            }
            Wanted::Ends(step) => {
                if let Ok(committed) = step.onto(&stored) {
                    self.write(process, row, &committed, None, false);
                }
                // There was room for another.
                Some(local)
            }
            Wanted::Stale(_) => None,
            Wanted::Deferred { until, why } => {
                self.note_deferred(process, endpoint, until, why);
                Some(until)
            }
        }
    }

    fn admitted(&mut self, endpoint: EndpointNo, local: Timestamp, expires: Timestamp) {
        let epoch = self.store.endpoint(endpoint).shard.epoch;
        let rule = &self.policy.gate;
        self.record.fact(self.now, &Fact::Admitted { endpoint, local, expires, rule, epoch });
    }

    /// The gate is closed; some wrong senders go on all the same.
    fn deferred(
        &mut self,
        process: Process,
        endpoint: EndpointNo,
        local: Timestamp,
        until: Timestamp,
        why: DeferReason,
        claims: &mut Vec<Claim>,
    ) -> Option<Timestamp> {
        self.note_deferred(process, endpoint, until, why);
        let first = self.store.due(endpoint).first().map(|(_, row)| *row);
        match (self.wrong.sender, why, first) {
            (Some(SenderMutant::TwoProbes), DeferReason::ProbeUnderWay, Some(row)) => {
                let policy = self.understood.clone();
                let ctx = Ctx { now: local, entropy: 0, policy: &policy };
                let admitted = Input::Admitted { held: Millis::ZERO };
                if let Ok(step) = self.store.rows[row].state.handle(ctx, admitted) {
                    self.admitted(endpoint, local, local.plus(policy.lease()));
                    let epoch = self.store.endpoint(endpoint).shard.epoch;
                    claims.push(Claim { row, step, permit: None, epoch });
                }
            }
            (Some(SenderMutant::OpenBurnsAttempts), DeferReason::BreakerOpen, Some(row)) => {
                self.burn(process, row, local);
            }
            _ => {}
        }
        Some(until)
    }

    /// S24: an attempt is used up without a request.
    fn burn(&mut self, process: Process, row: usize, local: Timestamp) {
        let policy = self.understood.clone();
        let ctx = Ctx { now: local, entropy: 0, policy: &policy };
        for input in [
            Input::Admitted { held: Millis::ZERO },
            Input::Finished {
                attempt: self.store.rows[row].state.attempts + 1,
                outcome: Outcome::Failed { failure: Failure::ConnectRefused },
            },
        ] {
            let stored = self.store.rows[row].state.clone();
            if let Ok(committed) = stored.handle(ctx, input).and_then(|step| step.onto(&stored)) {
                self.write(process, row, &committed, None, false);
            }
        }
    }

    fn note_deferred(
        &mut self,
        process: Process,
        endpoint: EndpointNo,
        until: Timestamp,
        why: DeferReason,
    ) {
        let is_draining = self.policy.gate.drain.is_some();
        self.sometimes(match why {
            DeferReason::BreakerOpen | DeferReason::ProbeUnderWay => Sometimes::DeferredByBreaker,
            DeferReason::Throttled => Sometimes::DeferredByThrottle,
            DeferReason::ConcurrencyLimit => Sometimes::DeferredByConcurrency,
            DeferReason::RateLimit if is_draining => Sometimes::DrainLimited,
            DeferReason::RateLimit => Sometimes::DeferredByRate,
        });
        let until = self.true_time(process, until);
        self.fact(&Fact::Deferred { endpoint, until });
    }

    /// Claims become true, those of them that still fit what is stored, and their attempts begin.
    pub(super) fn claims_commit(&mut self, process: Process, claims: Vec<Claim>) {
        let refusal = self.refuses(process);
        let refused = refusal.is_some();
        let (mut begun, mut is_one_given_back) = (Vec::new(), false);
        for claim in claims {
            let endpoint = self.store.rows[claim.row].route.endpoint;
            let is_early = self.is_sender(SenderMutant::SendBeforeClaim);
            let is_gone = !self.store.endpoint(endpoint).is_enabled;
            if refused || is_gone || self.is_fenced_off(endpoint, claim.epoch) {
                self.give_back(process, endpoint, claim.permit, claim.epoch);
                is_one_given_back |= !refused;
                continue;
            }
            let stored = &self.store.rows[claim.row].state;
            let next = claim.step.next().clone();
            let is_guarded = !self.is_sender(SenderMutant::ClaimInAutocommit);
            if is_guarded && claim.step.clone().onto(stored).is_err() {
                self.give_back(process, endpoint, claim.permit, claim.epoch);
                is_one_given_back |= !refused;
                continue;
            }
            if !is_early {
                self.note_newest(claim.row);
                self.store.write(claim.row, next.clone());
                self.tell_written(process, claim.row, None, None, false, false);
                self.keep_gate(process, endpoint);
            }
            begun.push((claim.row, next, claim.permit, claim.epoch));
        }
        if let Some(refusal) = refusal {
            self.gives_up_write(refusal);
            self.fact(&Fact::Hindered { until: self.now.plus(STORE_PAUSE) });
            self.pass_at(process, self.now.plus(STORE_PAUSE));
        }
        if self.passes(process, CrashPoint::StoreCommitted) {
            return;
        }
        if is_one_given_back {
            // There was room for another.
            self.poke(process);
        }
        for (row, claimed, permit, epoch) in begun {
            if !self.begin(process, row, claimed, permit, epoch) {
                return;
            }
        }
    }

    /// An attempt begins; `false` if the process ends here.
    fn begin(
        &mut self,
        process: Process,
        row: usize,
        claimed: hookproof_core::delivery::Delivery,
        permit: Option<Permit>,
        epoch: u64,
    ) -> bool {
        let Phase::InFlight { attempt: number, started_at, lease_until, .. } = claimed.phase else {
            return true;
        };
        let route = self.store.rows[row].route;
        let deadline = self.true_time(process, started_at.plus(self.policy.total_timeout));
        let id = self.store.new_attempt();
        let decided = self.fault_of_attempt(route.endpoint);
        let fault = decided.filter(|fault| self.does(*fault));
        let held_up = self.hosts.get(process).held_up;
        self.sender(process).attempts.insert(
            id,
            Attempt {
                row,
                route,
                number,
                permit,
                claimed,
                epoch,
                deadline,
                lease_until,
                fault,
                track: Track { decided, held_up, ..Track::default() },
                asked: None,
            },
        );
        if self.passes(process, CrashPoint::AttemptClaimed) {
            return false;
        }
        self.at(deadline, process, world::Step::Sender(Step::TimesOut(id)));
        self.after(Millis::ZERO, process, world::Step::Sender(Step::Dials(id)));
        true
    }
}
