//! What a draw decides, in words.

use crate::choices::Draw;
use crate::fault::{self, Fault};
use crate::plan::labels;
use hookproof_runtime::crash_point::CrashPoint;

/// What the value of a draw means, as far as it is more than a number.
pub(crate) fn meaning(draw: &Draw) -> String {
    let what = draw.key.what;
    let is_fault = Fault::ALL.iter().any(|fault| fault.as_str() == what);
    // What is no question of ours is a crash point that a receiver on trial has given a name.
    let is_point = CrashPoint::ALL.iter().any(|point| point.as_str() == what)
        || !labels::questions().any(|question| question == what);
    match draw.value {
        value if what == "connection" => {
            fault::on_connection_by_index(value).map_or(String::new(), |fault| fault.to_string())
        }
        0 => String::new(),
        weight if is_fault && draw.key.who.role == "plan" => format!("on, with weight {weight}"),
        _ if is_fault => "strikes".to_owned(),
        _ if is_point => "crashes here".to_owned(),
        _ => String::new(),
    }
}
