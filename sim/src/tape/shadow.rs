//! The model world's stores, told what the real ones committed, and asked what those were asked.

use std::collections::BTreeMap;

use hookproof_core::id::DeliveryId;
use hookproof_core::inbox::{self, Entry, Phase};

use super::{Compared, Event, Question};
use crate::model::Replica;

/// What the model's stores hold, and the questions that are open.
#[derive(Default)]
pub(super) struct Shadow {
    replica: Replica,
    /// A store answers from a moment between the question and the answer: what the model's said at
    /// each of them.
    open: BTreeMap<u64, (Question, Vec<Vec<DeliveryId>>)>,
}

impl Shadow {
    pub(super) fn see(&mut self, event: &Event, compared: &mut Compared) -> Result<(), String> {
        match event {
            // What a process that is gone had asked is answered by nobody.
            Event::SenderStarts => self.open.clear(),
            Event::DeliveryKept(delivery) => {
                self.replica.keep(delivery);
                for (question, said) in self.open.values_mut() {
                    said.push(say(&self.replica, question));
                }
            }
            Event::Asks(number, question) => {
                let said = vec![say(&self.replica, question)];
                self.open.insert(*number, (question.clone(), said));
            }
            Event::Hears(number, heard) => {
                let (question, said) =
                    self.open.remove(number).ok_or("an answer without a question")?;
                compared.reads += 1;
                if !said.contains(heard) {
                    return Err(format!(
                        "{question:?} was answered {heard:?}, and by the model's store {said:?}"
                    ));
                }
            }
            Event::EntryKept(entry) => self.replica.keep_entry(entry),
            Event::Entry { state, by, input: inbox::Input::Claim, result: Ok(_) } => {
                compared.reads += 1;
                return self.is_first(state, by.now);
            }
            _ => {}
        }
        Ok(())
    }

    /// The worker takes what has been due longest. What is committed in the same moment the model's
    /// inbox does not know yet.
    fn is_first(&self, taken: &Entry, now: hookproof_core::time::Timestamp) -> Result<(), String> {
        let due = |entry: &Entry| match entry.phase {
            Phase::Pending { due } => Some(due),
            _ => None,
        };
        match self.replica.first_due(now) {
            Some(first) if self.replica.holds(taken) && due(first) != due(taken) => {
                Err(format!("{taken:?} was taken, and {first:?} has been due longer"))
            }
            _ => Ok(()),
        }
    }
}

fn say(replica: &Replica, question: &Question) -> Vec<DeliveryId> {
    match question {
        Question::Due { endpoint, now, limit } => replica.due(endpoint, *now, *limit),
        Question::Leased { until, limit } => replica.leased(*until, *limit),
    }
}
