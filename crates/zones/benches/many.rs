//! How long it takes to serve a hundred thousand small zones, and to add one more; without and with
//! a record that is chosen and checked.

#![expect(clippy::print_stdout, reason = "a benchmark talks to its user")]

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use config::zones::Outcome;
use diagnostic::Diagnostic;
use engine::SnapshotCell;
use environment::System;
use plan::zones::Finding;
use wire::{Name, NameBuf};
use zone::Zone;
use zones::{
    Dependencies, Elsewhere, LoadedZones, Planned, Planner, Register, Signer, Trust, Watcher, ZoneManager,
};

const ZONES: usize = 100_000;
/// Zones that are added one by one.
const MORE: usize = 50;
const SMALL: &str =
    "$TTL 60\n@ SOA ns admin 1 7200 600 86400 300\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n";
const MAIN: &str = "zone-templates:\n\
                    \x20 small: {file: small}\n\
                    \x20 chosen: {file: small, choose: [{name: \"web.{name}\", type: A, check: web, from: [{data: [192.0.2.3, 192.0.2.4]}]}]}\n\
                    checks: {web: {port: 80}}\n\
                    zones: [{name: first.example, like: small}]\n";

/// Nothing is signed or checked here.
struct Nobody;

impl Watcher for Nobody {
    fn watch(&self, _: Name<'_>, _: &[Arc<plan::checks::Watched>]) {}
}

impl Trust for Nobody {
    fn of(&self, _: Name<'_>, _: &plan::zones::ZonemdPlan) -> Result<plan::zones::ZoneTrust, String> {
        Ok(plan::zones::ZoneTrust::default())
    }
}

impl zones::News for Nobody {
    fn transfer(&self, _: Name<'_>, _: &zones::TransferOutcome<'_>) {}

    fn changed(&self, _: Name<'_>) {}
}

impl Elsewhere for Nobody {
    fn addresses(&self, _: Name<'_>) -> Result<Vec<std::net::IpAddr>, String> {
        Ok(Vec::new())
    }

    fn fetch(&self, _: &zones::WebFile<'_>) -> Result<zones::WebReply, String> {
        Err("nobody is there".to_owned())
    }
}

impl Signer for Nobody {
    fn sign(&self, _: Name<'_>, _: &Arc<Zone>) {}

    fn begin(&self, _: Name<'_>, _: &Arc<plan::signing::SigningPolicy>) -> Option<Arc<Zone>> {
        None
    }

    fn end(&self, _: Name<'_>) {}
}

/// Plans zones as the configuration says.
struct Configured(Arc<config::zones::Planner>);

impl Planner for Configured {
    fn plan(&self, apex: Name<'_>, said: &str) -> Result<Planned, Vec<Diagnostic>> {
        let planned = self.0.plan(apex, said, &System)?;
        Ok(Planned { plan: planned.plan, warnings: planned.warnings })
    }

    fn place(&self, apex: Name<'_>, said: &str, findings: Vec<Finding>) -> Vec<Diagnostic> {
        self.0.place(apex, said, findings, &System)
    }
}

fn name(text: &str) -> NameBuf {
    NameBuf::from_text(text).expect("a name")
}

fn start(folder: &Path) -> (ZoneManager, Arc<SnapshotCell>) {
    let main = folder.join("gannet.yaml");
    let loaded = settings::load_text(&main, MAIN, &System).expect("no mistakes");
    let prepared = config::prepare(&loaded, &[], None, &System, None);
    let (zones, _) = LoadedZones::load(prepared.zones(), prepared.key(), None, &System);
    let wanted = prepared.caches().iter().map(|plan| (plan.name.as_str(), plan.octets_max));
    let caches = engine::Caches::new(prepared.key()).adopt(wanted);
    let plans = prepared.finish(caches, Outcome::default()).expect("it compiles");
    let (reclaim, freed) = std::sync::mpsc::channel();
    let (reclaim_zones, freed_zones) = std::sync::mpsc::channel();
    std::thread::spawn(move || freed.into_iter().for_each(drop));
    std::thread::spawn(move || freed_zones.into_iter().for_each(drop));
    let cell = SnapshotCell::new(Arc::clone(&plans.snapshot), reclaim).reclaiming_zones(reclaim_zones);
    let cell = Arc::new(cell);
    let state = folder.join("zones");
    let manager = ZoneManager::start(Dependencies {
        cell: Arc::clone(&cell),
        signer: Arc::new(Nobody),
        watcher: Arc::new(Nobody),
        trust: Arc::new(Nobody),
        elsewhere: Arc::new(Nobody),
        news: Arc::new(Nobody),
        key: plans.snapshot.key,
        transfers: transfer::Client::new(Arc::default()),
        folder: &state,
        register: Register::open(&state),
    });
    let manager = manager.expect("a thread");
    let planner: Arc<dyn Planner> = Arc::new(Configured(plans.planner));
    manager.adopt(&zones, &planner, None);
    (manager, cell)
}

/// Returns how many zones are served.
fn served(cell: &SnapshotCell) -> usize {
    cell.load().1.map_or(0, |authority| authority.zones.all().count())
}

fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.replace(['\t', ' '], "")
}

fn main() {
    for template in ["small", "chosen"] {
        println!("template {template}");
        measure(&format!("like: {template}"));
    }
}

fn measure(like: &str) {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    std::fs::write(directory.path().join("small"), SMALL).expect("a writable directory");
    let (manager, cell) = start(directory.path());
    let names: Vec<NameBuf> = (0..ZONES).map(|number| name(&format!("z{number}.example"))).collect();
    let begin = Instant::now();
    assert!(manager.add(&names, like, (None, "a bench")).iter().all(Result::is_ok));
    println!("{ZONES} zones added at once: {:?}; {}", begin.elapsed(), resident());
    assert_eq!(served(&cell), ZONES + 1);
    let one_by_one = |what: &str, change: &dyn Fn(&NameBuf) -> Vec<zones::Changed>| {
        let mut times: Vec<_> = (0..MORE)
            .map(|number| {
                let apex = name(&format!("more{number}.example"));
                let begin = Instant::now();
                assert!(change(&apex).iter().all(Result::is_ok));
                begin.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!("one {what}: {:?} in the middle, {:?} at most", times[MORE / 2], times[MORE - 1]);
    };
    one_by_one("more added", &|apex| manager.add(&[*apex], like, (None, "a bench")));
    assert_eq!(served(&cell), ZONES + 1 + MORE);
    one_by_one("of them removed", &|apex| manager.remove(&[*apex], None));
    assert_eq!(served(&cell), ZONES + 1);
    manager.stop();
    drop((manager, cell));
    let begin = Instant::now();
    let (manager, cell) = start(directory.path());
    println!("{ZONES} zones that were added, after a restart: {:?}", begin.elapsed());
    assert_eq!(served(&cell), ZONES + 1);
    manager.stop();
}
