//! Somebody on the way between sender and receiver, without the secret: sends again what passed, and
//! sends what nobody signed.

use hookproof_core::time::{Millis, Timestamp};
use hookproof_runtime::host::Host as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use turmoil::net::TcpStream;

use super::host::{PORT, RECEIVER, SimHost};
use super::reached;
use super::request::{RawRequest, status_of};
use super::verify::forged;
use crate::fault::Fault;

/// Something to send, and when.
#[derive(Clone, Debug)]
pub(super) struct Attack {
    pub(super) at: Timestamp,
    fault: Fault,
    request: RawRequest,
}

/// How often the attacker looks for something to do.
const LOOKS: Millis = Millis::new(20);

/// Draws what is done with a request that passes.
pub(super) fn plan(host: &SimHost, now: Timestamp, request: &RawRequest) -> Vec<Attack> {
    let (stage, who) = (&host.stage, "attacker");
    let mut attacks = Vec::new();
    let strikes = |fault: Fault| {
        stage.choices.chance(who, fault.as_str(), stage.faults.per_mille(fault))
            && stage.are_faults_on()
    };
    if strikes(Fault::ReplayAttack) {
        let seconds = [1, 5, 15, 30][index(stage.choices.draw(who, "replayed after", 4))];
        let mut copy = request.clone();
        if stage.choices.chance(who, "alters the timestamp", 300) {
            copy = copy.with("webhook-timestamp", |stamp| {
                stamp.parse::<u64>().map_or(stamp.to_owned(), |at| (at + seconds).to_string())
            });
        }
        let at = now.plus(Millis::from_secs(seconds));
        attacks.push(Attack { at, fault: Fault::ReplayAttack, request: copy });
    }
    if strikes(Fault::Forgery) {
        let is_malformed = stage.choices.chance(who, "malformed", 400);
        let junk = ["", "v1", "v1,", "v1,====", "v1,\u{fffd}", ",,, v1a,AAAA"]
            [index(stage.choices.draw(who, "junk", 6))];
        let signature = if is_malformed { junk.to_owned() } else { forged(request.body()) };
        let copy = request.with("webhook-signature", |_| signature.clone());
        // Before the real one arrives, if possible.
        attacks.push(Attack { at: now, fault: Fault::Forgery, request: copy });
    }
    for attack in &attacks {
        stage.journal.chose(attack.fault);
    }
    attacks.retain(|attack| stage.does(attack.fault));
    attacks
}

/// What the attacker does in its one life.
pub(super) async fn attack(host: SimHost) {
    loop {
        host.sleep(LOOKS).await;
        for attack in host.stage.attacks_due(host.true_now()) {
            let task_host = host.clone();
            host.spawn(async move { send(&task_host, attack).await });
        }
    }
}

async fn send(host: &SimHost, attack: Attack) {
    let Attack { fault, request, .. } = attack;
    let Ok(mut stream) = TcpStream::connect((RECEIVER, PORT)).await else { return };
    let was_valid = host.stage.is_valid_for_receiver(host.true_now(), &request);
    if stream.write_all(&request.to_bytes()).await.is_err() {
        return;
    }
    let mut response = Vec::new();
    // The connection may break off; what counts is what was answered until then.
    let _ = stream.take(4096).read_to_end(&mut response).await;
    let Some(status) = status_of(&response) else { return };
    host.stage.judged(host.true_now(), &request, was_valid, status);
    if let Some(what) = reached::by_attack(fault, &request, status) {
        host.stage.journal.reached(what);
    }
    host.stage.journal.fired(host.true_now(), host.name(), fault, &format!("answered {status}"));
}

fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(0)
}
