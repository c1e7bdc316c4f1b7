//! A service that the receiver's effects call. It knows by the key of a call what it has done, fails as the
//! history has it, and never crashes.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use hookproof_core::time::Millis;
use hookproof_receiver::downstream::KEY_HEADER;
use hookproof_runtime::host::Host as _;
use hookproof_runtime::server::{self, ServerLimits};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use turmoil::net::TcpListener;

use super::host::SimHost;
use super::stage::lock;
use crate::fault::Fault;
use crate::zoo::{Mutant, ReceiverMutant};

/// How long the receiver waits for its answer: less than the lease of its inbox.
pub(super) const PATIENCE: Millis = Millis::from_secs(2);

/// What it has done, by key.
type Ledger = BTreeSet<String>;

/// What it does with a call.
enum Act {
    Answers,
    Breaks,
    Hangs,
}

/// Serves until the host ends.
pub(super) async fn serve(host: SimHost, listener: TcpListener) {
    let (ledger, server) = (Arc::<Mutex<Ledger>>::default(), host.clone());
    let respond = move |request, _| respond(host.clone(), ledger.clone(), request);
    server::serve(server, listener, ServerLimits::default(), respond, pending()).await;
}

async fn respond(
    host: SimHost,
    ledger: Arc<Mutex<Ledger>>,
    request: Request<Incoming>,
) -> Response<Full<Bytes>> {
    let key = request.headers().get(KEY_HEADER).and_then(|value| value.to_str().ok());
    let Some((key, (source, event))) = key.and_then(|key| Some((key, key.split_once('.')?))) else {
        return answer(StatusCode::BAD_REQUEST);
    };
    let (stage, name) = (&host.stage, host.name());
    let act = act(&host);
    let is_done =
        matches!(act, Act::Answers) || stage.choices.chance(name, "downstream applies", 500);
    if is_done {
        let is_new = lock(&ledger).insert(key.to_owned());
        // R20: it is told no key that it could know.
        let keyless = Mutant::Receiver(ReceiverMutant::DownstreamWithoutKey);
        if is_new || stage.mutant == Some(keyless) {
            host.says(format!("effect of {event} from {source}"));
            stage.witness().effect_elsewhere(host.true_now(), source, event);
        }
    }
    if !stage.does(Fault::DownstreamFailure) {
        return answer(StatusCode::OK);
    }
    match act {
        Act::Answers => answer(StatusCode::OK),
        Act::Breaks => {
            stage.fails_call(key);
            answer(StatusCode::INTERNAL_SERVER_ERROR)
        }
        Act::Hangs => {
            stage.fails_call(key);
            host.sleep(PATIENCE.times(2)).await;
            answer(StatusCode::OK)
        }
    }
}

fn act(host: &SimHost) -> Act {
    let (stage, name, fault) = (&host.stage, host.name(), Fault::DownstreamFailure);
    let per_mille = stage.faults.per_mille(fault);
    let strikes = stage.choices.chance(name, fault.as_str(), per_mille);
    if !strikes || !stage.are_faults_on() {
        return Act::Answers;
    }
    stage.journal.chose(fault);
    let hangs = stage.choices.chance(name, "downstream hangs", 300);
    host.says(if hangs { "never answers".to_owned() } else { "answers 500".to_owned() });
    if hangs { Act::Hangs } else { Act::Breaks }
}

fn answer(status: StatusCode) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}
