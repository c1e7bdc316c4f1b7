//! Each decision once more, by a fresh machine.

use std::collections::BTreeMap;
use std::fmt::Debug;

use hookproof_core::delivery;
use hookproof_core::dispatch;
use hookproof_core::gate::{Gate, Permit, PermitId};
use hookproof_core::id::EndpointId;
use hookproof_core::inbox::{self, Entry, InboxRule};
use hookproof_core::policy::Policy;

use super::{AskedGate, By, Compared, Event, Wants};

/// The gates of a life of the sender, as they must be by what they were asked.
#[derive(Default)]
pub(super) struct Replay {
    gates: BTreeMap<EndpointId, Again>,
}

#[derive(Default)]
struct Again {
    gate: Gate,
    /// Permits that are out.
    permits: BTreeMap<PermitId, Permit>,
}

impl By<Policy> {
    fn ctx(&self) -> delivery::Ctx<'_> {
        delivery::Ctx { now: self.now, entropy: self.entropy, policy: &self.rule }
    }
}

impl By<InboxRule> {
    fn ctx(&self) -> inbox::Ctx<'_> {
        inbox::Ctx { now: self.now, entropy: self.entropy, rule: &self.rule }
    }
}

impl Replay {
    pub(super) fn see(&mut self, event: &Event, compared: &mut Compared) -> Result<(), String> {
        match event {
            Event::SenderStarts => self.gates.clear(),
            Event::Delivery { state, by, input, result } => {
                compared.deliveries += 1;
                same("the delivery", result, &state.handle(by.ctx(), *input))?;
            }
            Event::Gate { endpoint, asked, gate } => {
                compared.gates += 1;
                if let AskedGate::Want { .. } | AskedGate::Expire { .. } = asked {
                    compared.deliveries += 1;
                }
                if let AskedGate::Restore(stored) = asked {
                    let again = Again { gate: Gate::restored(stored.clone()), ..Again::default() };
                    self.gates.insert(endpoint.clone(), again);
                }
                let again = self.gates.get_mut(endpoint).ok_or("a gate that was not restored")?;
                again.ask(asked)?;
                same("the gate", gate, &again.gate)?;
            }
            Event::Entry { state, by, input, result } => {
                compared.entries += 1;
                same("the entry", result, &state.handle(by.ctx(), *input))?;
            }
            Event::Receipt { stored, source, event_id, now, receipt } => {
                compared.entries += 1;
                let again = Entry::receive(stored.as_ref(), source.clone(), event_id.clone(), *now);
                same("the receipt", receipt, &again)?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Again {
    fn ask(&mut self, asked: &AskedGate) -> Result<(), String> {
        match asked {
            AskedGate::Restore(_) => Ok(()),
            AskedGate::Room { rule, now, result } => {
                same("the room", result, &self.gate.room(rule, *now))
            }
            AskedGate::Want { state, by, result } => {
                let wanted = dispatch::want(&mut self.gate, state, by.ctx());
                let again = Wants::from(&wanted);
                if let dispatch::Wanted::Claim(_, permit) = wanted {
                    self.permits.insert(permit.id(), permit);
                }
                same("what is wanted", result, &again)
            }
            AskedGate::Expire { state, by, result } => {
                same("the end", result, &dispatch::expire(&self.gate, state, by.ctx()))
            }
            AskedGate::Renew { now, lease } => {
                same("whether a permit was overdue", &true, &self.gate.renew(*now, *lease))
            }
            AskedGate::Learn { rule, now, permit, lesson, result } => {
                let permit = self.permits.remove(permit).ok_or("a permit comes back twice")?;
                let again = dispatch::learn(&mut self.gate, rule, *now, permit, *lesson);
                same("what is learnt", result, &again)
            }
            AskedGate::Reset => {
                self.gate.reset();
                Ok(())
            }
        }
    }
}

fn same<T: PartialEq + Debug>(what: &str, seen: &T, again: &T) -> Result<(), String> {
    if seen == again {
        return Ok(());
    }
    Err(format!("{what} was {seen:?}, and core makes it {again:?}"))
}
