//! What the hosts run, from their start to their crash, and again after it.

use std::fmt;
use std::future::{Future, pending};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use hookproof_core::address::{AddressPolicy, Cidr};
use hookproof_core::secret::{Secret, Secrets};
use hookproof_receiver::config::ReceiverConfig;
use hookproof_receiver::sqlite::SqliteInbox;
use hookproof_receiver::store::Verified;
use hookproof_receiver::verifier::Verifier;
use hookproof_runtime::database::{DatabaseConfig, Durability};
use hookproof_runtime::host::Host as _;
use hookproof_sender::config::SenderConfig;
use hookproof_sender::sqlite::SqliteStore;
use hookproof_sender::tls::Tls;

use super::application::{self, Script};
use super::attacker;
use super::candidate::Start;
use super::downstream;
use super::host::{APPLICATION, ATTACKER, DOWNSTREAM, PORT, RECEIVER, SENDER, SimHost};
use super::people;
use super::stage::Stage;
use super::watched::Watched;
use crate::scenario::Scenario;
use crate::zoo::Mutant;
use crate::zoo::receivers::{Met, WrongInbox};
use crate::zoo::senders::{self, WrongStore};

/// What it takes to start the sender again and again.
#[derive(Clone)]
pub(super) struct Sender {
    pub(super) stage: Arc<Stage>,
    pub(super) path: PathBuf,
    pub(super) config: SenderConfig,
    pub(super) tls: Tls,
    pub(super) mutant: Option<Mutant>,
}

impl Sender {
    pub(super) async fn life(self) -> turmoil::Result {
        let Self { stage, path, mut config, tls, mutant } = self;
        live(SENDER, &stage, |host: SimHost| async move {
            let listener = host.listen(everywhere()).await.map_err(text)?;
            if let Some(Mutant::Sender(mutant)) = mutant
                && senders::before_start(mutant, &path, host.now()).map_err(text)?
            {
                host.stage.witness().sender_committed(&host.moment());
            }
            let store = SqliteStore::open(&host, &database(path.clone())).map_err(text)?;
            let policy = config.policy.clone();
            match mutant {
                Some(Mutant::Sender(mutant)) => {
                    senders::after_open(mutant, &path).map_err(text)?;
                    senders::misunderstand(mutant, &mut config.policy);
                    let store = WrongStore::new(store, host.clone(), mutant, &policy, &path);
                    let store = Watched::new(store, host.clone(), &policy);
                    hookproof_sender::run(host, listener, config, tls, store, pending()).await;
                }
                _ => {
                    let store = Watched::new(store, host.clone(), &policy);
                    hookproof_sender::run(host, listener, config, tls, store, pending()).await;
                }
            }
            Ok(())
        })
        .await
    }
}

/// What it takes to start the receiver again and again.
#[derive(Clone)]
pub(super) struct Receiver {
    pub(super) stage: Arc<Stage>,
    pub(super) path: PathBuf,
    pub(super) config: ReceiverConfig,
    pub(super) mutant: Option<Mutant>,
}

impl Receiver {
    pub(super) async fn life(self) -> turmoil::Result {
        let Self { stage, path, mut config, mutant } = self;
        for source in &mut config.sources {
            // It starts with those secrets that it is to know now.
            let known = stage.witness().known_to_receiver(source.id.as_str());
            let known = known.into_iter().filter_map(|key| Secret::from_bytes(key).ok());
            if let Ok(secrets) = Secrets::new(known.collect()) {
                source.verifier = Verifier::standard(&secrets);
            }
        }
        live(RECEIVER, &stage, |host: SimHost| async move {
            let listener = host.listen(everywhere()).await.map_err(text)?;
            let store = SqliteInbox::open(&host, &database(path)).map_err(text)?;
            match mutant {
                Some(Mutant::Receiver(mutant)) => {
                    let stage = host.stage.clone();
                    let is_met: Met = Arc::new(move |delivery: &Verified| {
                        stage.was_met(delivery.source.as_str(), delivery.event_id.as_str())
                    });
                    let store = WrongInbox::new(store, host.clone(), mutant, is_met);
                    hookproof_receiver::run(host, listener, config, store, pending()).await;
                }
                _ => hookproof_receiver::run(host, listener, config, store, pending()).await,
            }
            Ok(())
        })
        .await
    }
}

/// What it takes to start a program on trial again and again.
#[derive(Clone)]
pub(super) struct OnTrial {
    /// Its host.
    pub(super) name: &'static str,
    pub(super) stage: Arc<Stage>,
    pub(super) start: Start,
}

impl OnTrial {
    pub(super) async fn life(self) -> turmoil::Result {
        live(self.name, &self.stage, |host: SimHost| async move {
            let listener = host.listen(everywhere()).await.map_err(text)?;
            (self.start)(host, listener).await;
            Ok(())
        })
        .await
    }
}

/// What the application does in its one life.
pub(super) async fn application(
    stage: Arc<Stage>,
    script: Script,
    scenario: Scenario,
) -> turmoil::Result {
    live(APPLICATION, &stage, |host: SimHost| async move {
        let sources: Vec<String> =
            script.endpoints.iter().map(|endpoint| endpoint.source().to_owned()).collect();
        application::register(&host, &script).await;
        application::publish(&host, script);
        people::act(&host, &scenario, &sources);
        application::own(host).await;
        Ok(())
    })
    .await
}

/// What somebody on the way does.
pub(super) async fn attacker(stage: Arc<Stage>) -> turmoil::Result {
    live(ATTACKER, &stage, |host: SimHost| async move {
        attacker::attack(host).await;
        Ok(())
    })
    .await
}

/// What a service does that the receiver calls.
pub(super) async fn downstream(stage: Arc<Stage>) -> turmoil::Result {
    live(DOWNSTREAM, &stage, |host: SimHost| async move {
        let listener = host.listen(everywhere()).await.map_err(text)?;
        downstream::serve(host, listener).await;
        Ok(())
    })
    .await
}

/// Runs one life of a host, until its fuse blows. That it ends otherwise is a breakdown.
pub(super) async fn live<F, L>(name: &'static str, stage: &Arc<Stage>, life: F) -> turmoil::Result
where
    F: FnOnce(SimHost) -> L,
    L: Future<Output = Result<(), String>> + Send + 'static,
{
    let host = SimHost::boot(name, stage);
    let (witness, life) = (host.clone(), life(host.clone()));
    host.bound(async move {
        if let Err(what) = life.await {
            witness.stage.journal.breakdown(witness.true_now(), name, &what);
        }
    })
    .await;
    Ok(())
}

pub(super) fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// What everybody's listener binds to.
pub(super) fn everywhere() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), PORT)
}

/// Simulated hosts have private addresses. The receiver's may be reached, and no other.
pub(super) fn address_policy(receiver: IpAddr) -> AddressPolicy {
    let allow_cidrs = Vec::from_iter(format!("{receiver}/32").parse::<Cidr>());
    AddressPolicy { allow_cidrs, ..AddressPolicy::default() }
}

pub(super) fn database(path: PathBuf) -> DatabaseConfig {
    // The end of a process is modelled, the loss of power is not: see docs/sim.md.
    DatabaseConfig { path, durability: Durability::ProcessEnd }
}
