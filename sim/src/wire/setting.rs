//! What a history of the wire world begins with: its network and folders, what is planned, and how its
//! receiver is set up.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use hookproof_core::id::SourceId;
use hookproof_core::ordering::Late;
use hookproof_core::secret::{Secret, Secrets};
use hookproof_core::time::{Millis, Timestamp};
use hookproof_receiver::config::{ReceiverConfig, Source};
use hookproof_receiver::downstream::Downstream;
use hookproof_receiver::ordering::{OrderingRule, Pointer};
use hookproof_runtime::server::ServerLimits;
use tempfile::TempDir;

use super::application::{ENTITY_AT, Integration, Publish, Script, VERSION_AT};
use super::downstream;
use super::host::{DOWNSTREAM, RECEIVER, SENDER};
use super::stage::Stage;
use crate::choices::Choices;
use crate::fault::{Fault, Faults};
use crate::history::{EPOCH, epoch};
use crate::journal::Journal;
use crate::scenario::Scenario;

/// A folder for the stores: in memory where the system offers that, since nothing in it is to last.
pub(super) fn directory() -> std::io::Result<TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir()
        && let Ok(directory) = TempDir::with_prefix_in("hookproof-", memory)
    {
        return Ok(directory);
    }
    TempDir::with_prefix("hookproof-")
}

pub(super) fn network(scenario: &Scenario) -> turmoil::Sim<'static> {
    let tick = scenario.tick.to_duration();
    turmoil::Builder::new()
        .epoch(UNIX_EPOCH + EPOCH)
        .simulation_duration(Duration::from_secs(24 * 3600))
        .tick_duration(tick)
        // Latencies are choices, drawn per connection; the network itself adds one tick.
        .min_message_latency(tick)
        .max_message_latency(tick)
        .fail_rate(0.0)
        // Whoever stands still accepts nothing, and what wants to connect meanwhile waits.
        .tcp_capacity(4096)
        .rng_seed(0)
        .build()
}

/// Draws the script. A receiver on trial is the only endpoint.
pub(super) fn script(scenario: &Scenario, choices: &Choices, only: Option<Integration>) -> Script {
    let endpoints =
        choices.between("plan", "endpoints", scenario.endpoints.0, scenario.endpoints.1);
    let events = choices.between("plan", "events", scenario.events.0, scenario.events.1);
    let drawn = |number| {
        let key = (0..4).flat_map(|_| choices.bits("plan", "secret").to_be_bytes()).collect();
        Integration { path: format!("/hooks/shop-{number}"), key }
    };
    let endpoints = match only {
        Some(integration) => vec![integration],
        None => (0..endpoints).map(drawn).collect(),
    };
    let mut publishes: Vec<Publish> = (0..events)
        .map(|number| {
            // Some events are published together: what interleaves is where bugs live.
            let slot = choices.draw("plan", "published at", scenario.publishing.get() / 1000);
            let at = epoch().plus(Millis::from_secs(1 + slot));
            let body = format!(
                "{{ \"type\": \"order.paid\", \"order\": {number}, \"total\": 1.0, \"note\": \"\u{2665}\" }}"
            );
            Publish { at, key: format!("order-{number}"), body: body.into_bytes() }
        })
        .collect();
    publishes.sort_by_key(|publish| publish.at);
    for (number, publish) in (0..).zip(&mut publishes) {
        say_version(scenario, number, &mut publish.body);
    }
    Script { endpoints, publishes }
}

/// The events are about one entity after the other, in the order in which they are published.
fn say_version(scenario: &Scenario, number: u64, body: &mut Vec<u8>) {
    if scenario.entities == 0 {
        return;
    }
    let (entity, version) = (number % scenario.entities, number / scenario.entities + 1);
    body.truncate(body.len().saturating_sub(2));
    let data = format!(", \"data\": {{ \"id\": \"cart-{entity}\", \"version\": {version} }} }}");
    body.extend_from_slice(data.as_bytes());
}

pub(super) fn partitions(
    scenario: &Scenario,
    choices: &Choices,
    faults: &Faults,
) -> Vec<(Timestamp, Timestamp)> {
    let per_mille = faults.per_mille(Fault::Partition);
    let mut partitions = Vec::new();
    for _ in 0..2 {
        let is_on = choices.chance("plan", "partition", per_mille);
        let begin = choices.draw("plan", "partition at", scenario.safety.get());
        let length = choices.between("plan", "partition for", 1, 15);
        if is_on {
            let begin = epoch().plus(Millis::new(begin));
            partitions.push((begin, begin.plus(Millis::from_secs(length))));
        }
    }
    partitions
}

/// Wall clocks that are wrong from the beginning.
pub(super) fn skew_clocks(stage: &Stage) {
    let per_mille = stage.faults.per_mille(Fault::ClockSkew);
    for host in [SENDER, RECEIVER] {
        let is_on = stage.choices.chance(host, "clock skew", per_mille);
        let minutes = stage.choices.between(host, "clock ahead", 0, 12);
        let ahead = (i64::try_from(minutes).unwrap_or(0) - 6) * 60_000;
        if is_on && ahead != 0 {
            stage.set_wall(host, Fault::ClockSkew, ahead);
        }
    }
}

/// By how many milliseconds clocks are set.
const STEPS_MS: [i64; 4] = [-3_600_000, -60_000, 60_000, 3_600_000];

pub(super) fn clock_steps(
    scenario: &Scenario,
    choices: &Choices,
    faults: &Faults,
) -> Vec<(Timestamp, &'static str, i64)> {
    let per_mille = faults.per_mille(Fault::ClockStep);
    let mut steps = Vec::new();
    for host in [SENDER, RECEIVER, SENDER, RECEIVER] {
        let is_on = choices.chance(host, "clock step", per_mille);
        let by = STEPS_MS[usize::try_from(choices.draw(host, "clock set by", 4)).unwrap_or(0)];
        let at = choices.draw(host, "clock set at", scenario.safety.get());
        if is_on {
            steps.push((epoch().plus(Millis::new(at)), host, by));
        }
    }
    steps
}

/// Times in which a store refuses every write.
pub(super) fn full_stores(
    scenario: &Scenario,
    choices: &Choices,
    faults: &Faults,
    journal: &Journal,
) -> BTreeMap<&'static str, (Timestamp, Timestamp)> {
    let per_mille = faults.per_mille(Fault::StoreFull);
    let mut full = BTreeMap::new();
    for host in [SENDER, RECEIVER] {
        let is_on = choices.chance(host, "store full", per_mille);
        let from =
            epoch().plus(Millis::new(choices.draw(host, "full from", scenario.safety.get())));
        let seconds = choices.between(host, "full for", 1, 20);
        if is_on {
            journal.chose(Fault::StoreFull);
            full.insert(host, (from, from.plus(Millis::from_secs(seconds))));
        }
    }
    full
}

/// Bodies say which version of which entity they are about, if they are to be ordered.
fn ordering(scenario: &Scenario) -> Option<OrderingRule> {
    if scenario.entities == 0 {
        return None;
    }
    let pointer = |text: &str| Pointer::try_from(text.to_owned()).ok();
    let (entity, version) = (pointer(ENTITY_AT)?, pointer(VERSION_AT)?);
    Some(OrderingRule { entity, version, late: Late::default() })
}

pub(super) fn receiver_config(scenario: &Scenario, script: &Script) -> ReceiverConfig {
    let downstream = Downstream::new(&format!("http://{DOWNSTREAM}/entries"))
        .ok()
        .filter(|_| scenario.downstream)
        .map(|downstream| Downstream { timeout: downstream::PATIENCE, ..downstream });
    let sources = script
        .endpoints
        .iter()
        .filter_map(|integration| {
            let id = SourceId::new(integration.source()).ok()?;
            let secrets = Secrets::one(Secret::from_bytes(integration.key.clone()).ok()?);
            Some(Source {
                ordering: ordering(scenario),
                downstream: downstream.clone(),
                ..Source::new(id, &secrets)
            })
        })
        .collect();
    ReceiverConfig {
        sources,
        inbox: Scenario::inbox_rule(),
        body_bytes_max: 1024 * 1024,
        body_timeout: Millis::from_secs(10),
        limits: ServerLimits::default(),
        sweep_interval: Millis::from_secs(1),
    }
}
