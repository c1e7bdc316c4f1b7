//! Black-box conformance cases for webhook receivers.
//!
//! A case says what is sent to a receiver, how the answer is judged, why that matters and how to mend
//! what is wrong. Cases are data with permanent ids: [`case`] has their form. The runner that sends
//! them is not part of this version.

pub mod case;
