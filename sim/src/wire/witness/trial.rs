//! What is seen of a sender on trial, which tells nobody when it commits.

use hookproof_core::time::Timestamp;

use super::{AttemptName, Moment, Witness};
use crate::fact::Life;
use crate::wire::queue::delivery_of;

/// Whose store it is, whichever life of the process has written: of its versions nobody is told.
pub(super) const OWNER: Life = Life { process: 0, number: 1 };

impl Witness {
    /// Whether there is another sender than the reference sender.
    pub(in crate::wire) fn is_sender_on_trial(&self) -> bool {
        self.sender.is_on_trial()
    }

    /// A sender on trial is asked for its books.
    pub(in crate::wire) fn ask_sender(&mut self, now: Timestamp) {
        if self.is_sender_on_trial() {
            self.sender_committed(&Moment { now, local: now, wall: now, life: OWNER });
        }
    }

    /// A sender on trial begins an attempt to send an event: its name, under which it is tracked.
    pub(in crate::wire) fn calls(&mut self, event: &str) -> AttemptName {
        let (delivery, endpoint) = delivery_of(event);
        self.names.route_of(&delivery, event, endpoint);
        let delivery = self.names.delivery(&delivery);
        let before = self.attempts.keys().filter(|name| name.delivery == delivery).count();
        let number = u32::try_from(before).unwrap_or(u32::MAX).saturating_add(1);
        let name = AttemptName { delivery, number };
        self.track(name);
        name
    }
}
