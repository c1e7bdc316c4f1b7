//! The dependency graph as `cargo metadata` tells it: which of our packages may use which, and
//! that core reaches no clock, no randomness and no runtime.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// The graph of the workspace: each package with exactly the packages of ours that it uses outside
/// its tests. A new edge is a decision of design: it goes here and into `docs/architecture.md`.
const ALLOWED: [(&str, &[&str]); 7] = [
    ("hookproof-core", &[]),
    ("hookproof-runtime", &["hookproof-core"]),
    ("hookproof-sender", &["hookproof-core", "hookproof-runtime"]),
    ("hookproof-receiver", &["hookproof-core", "hookproof-runtime"]),
    (
        "hookproof-sim",
        &["hookproof-core", "hookproof-runtime", "hookproof-sender", "hookproof-receiver"],
    ),
    ("hookproof-conformance", &["hookproof-core"]),
    (
        "hookproof",
        &[
            "hookproof-core",
            "hookproof-runtime",
            "hookproof-sender",
            "hookproof-receiver",
            "hookproof-sim",
            "hookproof-conformance",
        ],
    ),
];

/// What core must not reach, not even through another crate: each brings a clock, randomness or
/// I/O within the reach of a decision.
const IMPURE: [&str; 7] = ["chrono", "getrandom", "hyper", "jiff", "rand", "time", "tokio"];

#[test]
fn each_package_depends_on_exactly_the_packages_the_design_allows() {
    let metadata = workspace_metadata();
    let found: BTreeMap<_, _> = packages(&metadata)
        .map(|package| (name(package), dependencies_of_ours(&metadata, package, is_not_dev)))
        .collect();
    let allowed: BTreeMap<_, BTreeSet<_>> =
        ALLOWED.iter().map(|(package, uses)| (*package, uses.iter().copied().collect())).collect();

    let mut faults = Vec::new();
    for (package, uses) in &found {
        let Some(may_use) = allowed.get(package) else {
            faults.push(format!("{package} is new: say in ALLOWED what it may depend on"));
            continue;
        };
        for extra in uses.difference(may_use) {
            faults.push(format!("{package} must not depend on {extra}"));
        }
        for missing in may_use.difference(uses) {
            faults.push(format!("{package} does not depend on {missing}: drop it from ALLOWED"));
        }
    }
    for gone in allowed.keys().filter(|package| !found.contains_key(*package)) {
        faults.push(format!("{gone} is no package of the workspace: drop it from ALLOWED"));
    }
    assert!(faults.is_empty(), "the dependency graph is not the design's:\n{}", faults.join("\n"));
}

#[test]
fn nothing_depends_on_the_command_line_not_even_a_test() {
    let metadata = workspace_metadata();
    let users: Vec<_> = packages(&metadata)
        .filter(|package| dependencies_of_ours(&metadata, package, |_| true).contains("hookproof"))
        .map(name)
        .collect();
    assert!(users.is_empty(), "these depend on `hookproof`, the command line: {users:?}");
}

#[test]
fn core_reaches_no_clock_no_randomness_and_no_runtime_even_through_other_crates() {
    let metadata = resolved_metadata();
    let names: BTreeMap<_, _> =
        packages(&metadata).map(|package| (text(package, "id"), name(package))).collect();
    let uses = normal_dependencies(&metadata);

    // Breadth first, keeping the shortest way to each crate for the message.
    let core = names
        .iter()
        .find_map(|(id, name)| (*name == "hookproof-core").then_some(*id))
        .expect("the workspace has a hookproof-core");
    let mut ways = BTreeMap::from([(core, String::from("hookproof-core"))]);
    let mut queue = VecDeque::from([core]);
    while let Some(id) = queue.pop_front() {
        for next in &uses[id] {
            if !ways.contains_key(next) {
                ways.insert(next, format!("{} -> {}", ways[id], names[next]));
                queue.push_back(next);
            }
        }
    }

    let reached: BTreeMap<_, _> = ways.iter().map(|(id, way)| (names[id], way)).collect();
    assert!(reached.contains_key("digest"), "the walk saw not even sha2's own dependency");
    let impure: Vec<_> = IMPURE.iter().filter_map(|name| reached.get(name)).collect();
    assert!(
        impure.is_empty(),
        "core must stay free of {IMPURE:?}; take time and entropy as arguments. Found:\n{impure:#?}"
    );
}

/// What `cargo metadata` says of the packages of this workspace alone. Needs no network.
pub(crate) fn workspace_metadata() -> Value {
    metadata(&["--no-deps", "--offline"])
}

/// The packages in `metadata`.
pub(crate) fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().expect("metadata lists its packages").iter()
}

/// The name of a package or of a target.
pub(crate) fn name(of: &Value) -> &str {
    text(of, "name")
}

/// The directory that holds the workspace's `Cargo.toml`.
pub(crate) fn workspace_root() -> PathBuf {
    // Cargo and nextest both set it for a running test, so that a test binary built for another
    // checkout does not look there.
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().expect("the package lies in the workspace").to_path_buf()
}

/// What `cargo metadata` says of every crate that a build for this machine takes in.
///
/// Without `--offline`, since a build of one package alone leaves other packages' crates to be
/// fetched; where all are there, nothing asks the network. Other platforms' crates are left out,
/// for the same reason.
fn resolved_metadata() -> Value {
    let version = String::from_utf8(cargo(&["-vV"])).expect("cargo prints UTF-8");
    let host =
        version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo knows its host");
    metadata(&["--locked", "--filter-platform", host])
}

fn metadata(args: &[&str]) -> Value {
    let output = cargo(&[&["metadata", "--format-version", "1"], args].concat());
    serde_json::from_slice(&output).expect("cargo metadata prints JSON")
}

fn cargo(args: &[&str]) -> Vec<u8> {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(program)
        .args(args)
        .current_dir(workspace_root())
        .output()
        .expect("cargo can be run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {} failed:\n{errors}", args.join(" "));
    output.stdout
}

/// The packages of this workspace on which `package` depends, in a way that `counts`.
fn dependencies_of_ours<'a>(
    metadata: &'a Value,
    package: &'a Value,
    counts: impl Fn(&Value) -> bool,
) -> BTreeSet<&'a str> {
    let ours: BTreeSet<_> = packages(metadata).map(name).collect();
    let dependencies = package["dependencies"].as_array().expect("a package lists dependencies");
    dependencies
        .iter()
        .filter(|dependency| counts(dependency))
        .map(name)
        .filter(|name| ours.contains(name))
        .collect()
}

fn is_not_dev(dependency: &Value) -> bool {
    dependency["kind"] != "dev"
}

/// For each package id, the ids of what it depends on outside tests and build scripts.
fn normal_dependencies(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().expect("metadata has a resolved graph");
    let is_normal = |dependency: &&Value| {
        let kinds = dependency["dep_kinds"].as_array().expect("a dependency has kinds");
        kinds.iter().any(|kind| kind["kind"].is_null())
    };
    nodes
        .iter()
        .map(|node| {
            let dependencies = node["deps"].as_array().expect("a node lists dependencies");
            let normal = dependencies.iter().filter(is_normal).map(|dep| text(dep, "pkg"));
            (text(node, "id"), normal.collect())
        })
        .collect()
}

fn text<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().expect("the field is a string")
}
