//! Trust anchors: the settings to plans.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use diagnostic::{At, Problem, io_text};
use dnssec::anchors::{KeyState, TrustAnchors, read_anchors};
use dnssec::{Dnskey, Ds};
use environment::{Environment, glob};
use plan::anchors::{AnchorPlan, AnchorSource};
use plan::resolvers::Plan;
use resolver::TrustAnchor;

use settings::{ResolverSettings, Settings};

/// Where the state of trust anchors is kept if nothing else is said, below the folder for state.
const FOLDER: &str = "anchors";

/// Returns what the resolvers of a plan trust over time: those that validate.
pub(super) fn plan(
    settings: &Settings,
    resolvers: &Plan,
    state_directory: &Path,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Vec<AnchorPlan> {
    let validating = resolvers.resolvers.iter().filter(|plan| plan.settings.validation.judges());
    let plans = validating.filter_map(|plan| {
        let written = settings.resolvers.iter().find(|written| written.name.value == plan.name)?;
        let source = source(written, state_directory, environment, problems);
        Some(AnchorPlan {
            resolver: plan.clone(),
            source,
            negative: written.negative.clone(),
            negative_file: state_directory.join(FOLDER).join(format!("{}.negative", written.name.value)),
            signals: written.signals,
        })
    });
    plans.collect()
}

/// Returns where a resolver's anchors come from.
fn source(
    written: &ResolverSettings,
    state_directory: &Path,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> AnchorSource {
    let hold_down = written.hold_down;
    let (file, text) = match (&written.trust_anchor_state, &*written.trust_anchors) {
        (Some(file), _) => (file.value.clone(), state(file, environment, problems)),
        (None, [file]) => return AnchorSource::Fixed { file: Some(file.value.clone()) },
        (None, [_, _, ..]) => return AnchorSource::Fixed { file: None },
        // Those that the configuration has are as it says.
        (None, []) if !written.anchor_records.is_empty() => return AnchorSource::Fixed { file: None },
        (None, []) => {
            let folder = state_directory.join(FOLDER);
            let file =
                At { value: folder.join(format!("{}.keys", written.name.value)), span: written.name.span };
            let text = match environment.read(&file.value) {
                // Who checks a configuration need not be who keeps the state.
                Err(error) if error.kind() == ErrorKind::PermissionDenied => None,
                _ => state(&file, environment, problems),
            };
            (file.value, text)
        }
    };
    let completes = !written.trust_anchors.is_empty() || !written.anchor_records.is_empty();
    AnchorSource::Followed { file, text, completes, hold_down }
}

/// Octets of a character-string (RFC 1035 §3.3).
const TEXT_OCTETS_MAX: usize = 255;

/// Returns which zones are trusted, with the tags of their keys, as clients are told: those of the
/// configuration, and of state files as they were when it was read.
pub(super) fn shown(plans: &[AnchorPlan]) -> Box<[Box<[u8]>]> {
    let mut tags: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for plan in plans {
        for anchor in &plan.resolver.settings.trust.anchors {
            let ds = anchor.ds.iter().filter_map(|ds| Ds::parse(ds)).map(|ds| ds.tag);
            let keys = anchor.keys.iter().filter_map(|key| Dnskey::parse(key)).map(Dnskey::tag);
            tags.entry(anchor.zone.to_string()).or_default().extend(ds.chain(keys));
        }
        let AnchorSource::Followed { text: Some(text), .. } = &plan.source else { continue };
        // What is wrong with it was said when it was read.
        for followed in TrustAnchors::read_all(text).unwrap_or_default() {
            tags.insert(followed.zone().to_string(), followed.tags());
        }
    }
    let texts = tags.into_iter().map(|(zone, mut tags)| {
        tags.sort_unstable();
        tags.dedup();
        let mut text = zone;
        tags.iter().for_each(|tag| text.push_str(&format!(" {tag}")));
        text.truncate(TEXT_OCTETS_MAX);
        text.into_bytes().into()
    });
    texts.collect()
}

/// Reads a state file, which need not be there.
fn state(file: &At<PathBuf>, environment: &dyn Environment, problems: &mut Vec<Problem>) -> Option<String> {
    let shown = file.value.display();
    let text = match environment.read(&file.value) {
        Ok(octets) => String::from_utf8_lossy(&octets).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            let message = format!("cannot read \"{shown}\": {}", io_text(&error));
            problems.push(Problem::error(file.span, message));
            return None;
        }
    };
    // The time counts for keys without a state only, and not for whether it can be read.
    if let Err(fault) = TrustAnchors::read_all(&text) {
        let problem = Problem::error(file.span, format!("\"{shown}\", {fault}"));
        problems.push(problem.expected("the state of trust anchors (RFC 5011), or DS or DNSKEY records"));
        return None;
    }
    Some(text)
}

/// Reads which zones are trusted.
pub(super) fn read(
    written: &[At<PathBuf>],
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) -> Vec<TrustAnchor> {
    let mut anchors = Vec::new();
    for file in written {
        let files = glob::expand(&file.value.to_string_lossy(), environment);
        if files.is_empty() {
            let message = format!("there is no file \"{}\"", file.value.display());
            problems.push(Problem::error(file.span, message));
        }
        for value in files {
            read_file(&At { value, span: file.span }, &mut anchors, environment, problems);
        }
    }
    anchors
}

/// Adds the zones that a file trusts.
fn read_file(
    file: &At<PathBuf>,
    anchors: &mut Vec<TrustAnchor>,
    environment: &dyn Environment,
    problems: &mut Vec<Problem>,
) {
    let shown = file.value.display();
    let text = match environment.read(&file.value) {
        Ok(octets) => String::from_utf8_lossy(&octets).into_owned(),
        Err(error) => {
            let message = format!("cannot read \"{shown}\": {}", io_text(&error));
            problems.push(Problem::error(file.span, message));
            return;
        }
    };
    let rows = match read_anchors(&text) {
        Ok(rows) => rows,
        Err(fault) => {
            problems.push(Problem::error(file.span, format!("\"{shown}\", {fault}")));
            return;
        }
    };
    let mut is_empty = true;
    for row in rows {
        // Of a state file, keys that are new or gone do not count (RFC 5011 §4).
        if matches!(row.state, Some((state, ..)) if !matches!(state, KeyState::Valid | KeyState::Missing)) {
            continue;
        }
        is_empty = false;
        TrustAnchor::add(anchors, row.owner.as_name(), row.rtype, row.rdata);
    }
    if is_empty {
        let problem = Problem::error(file.span, format!("\"{shown}\" has no trust anchor"));
        problems.push(problem.expected("DS or DNSKEY records"));
    }
}

#[cfg(test)]
mod tests {
    use dnssec::anchors::ROOT_DS;
    use environment::Memory;
    use plan::anchors::{AnchorPlan, AnchorSource, NegativeEnd};
    use settings::load::load_text;
    use std::path::Path;

    const RECURSE: &str = "policy: {main: [recurse]}\n";
    const DS: &str = "20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D";

    fn compile(text: &str, files: &[(&str, &str)]) -> Result<Vec<AnchorPlan>, String> {
        let all = [files, &[("/etc/resolv.conf", "nameserver 192.0.2.1\n")]].concat();
        let memory = Memory::new(&all);
        let text = format!("resolvers: {{default: {{{text}}}}}\n{RECURSE}");
        let loaded = load_text(Path::new("/x"), &text, &memory).map_err(|found| found[0].line())?;
        let plans = super::super::compile(&loaded, &[], None, &memory).map_err(|found| found[0].line())?;
        Ok(plans.anchors.to_vec())
    }

    #[test]
    fn trust_anchors_come_from_a_file() {
        let text = "trust-anchors: /anchors";
        let file = format!(". IN DS {DS}\nexample. IN DS {DS}\n");
        let plans = compile(text, &[("/anchors", &file)]).expect("no mistakes");
        let anchors = plans[0].initial();
        let found: Vec<_> = anchors.iter().map(|it| (it.zone.to_string(), it.ds.len())).collect();
        assert_eq!(found, [(".".to_owned(), 1), ("example.".to_owned(), 1)]);
        assert_eq!(anchors[0].ds, anchors[1].ds);
        assert_eq!(plans[0].source, AnchorSource::Fixed { file: Some("/anchors".into()) });
        let mistake = |file: &str| compile(text, &[("/anchors", file)]).expect_err("a mistake");
        assert!(mistake("").contains("\"/anchors\" has no trust anchor"));
        assert!(mistake(". IN DS 1 2\n").contains("\"/anchors\", line 1: "));
    }

    #[test]
    fn trust_anchors_come_from_several_files_in_either_notation() {
        let records = format!("example. IN DS {DS}\n");
        let (tag, digest) = DS.split_once(" 8 2 ").expect("three parts");
        let statements = format!("trust-anchors {{ test. initial-ds {tag} 8 2 \"{digest}\"; }};");
        let files = [("/a", &*records), ("/d/b.key", &statements), ("/d/c.key", &records), ("/d/other", "?")];
        let plans = compile("trust-anchors: [/a, \"/d/*.key\"]", &files).expect("no mistakes");
        let anchors = plans[0].initial();
        let found: Vec<_> = anchors.iter().map(|it| (it.zone.to_string(), it.ds.clone())).collect();
        assert_eq!(found.len(), 2);
        assert_eq!((&*found[0].0, &*found[1].0), ("example.", "test."));
        assert_eq!(found[0].1[0], found[1].1[0]);
        assert_eq!(plans[0].source, AnchorSource::Fixed { file: None });
        let found = compile("trust-anchors: /none/*.key", &files).expect_err("a mistake");
        assert!(found.contains("there is no file \"/none/*.key\""), "{found}");
    }

    #[test]
    fn negative_trust_anchors_of_the_settings_have_no_end() {
        let plans = compile("negative-trust-anchors: [corp.example, lab.]", &[]).expect("no mistakes");
        let found: Vec<_> = plans[0].negative.iter().map(|it| (it.zone.to_string(), it.end)).collect();
        let expect = [("corp.example.", NegativeEnd::Never), ("lab.", NegativeEnd::Never)];
        assert_eq!(found, expect.map(|(zone, end)| (zone.to_owned(), end)));
        assert_eq!(plans[0].negative_file, Path::new("/var/lib/gannet/anchors/default.negative"));
        let found = compile("negative-trust-anchors: [a..example]", &[]).expect_err("a mistake");
        assert!(found.contains("a..example"), "{found}");
    }

    fn followed(plans: &[AnchorPlan]) -> (&Path, Option<&str>) {
        match &plans[0].source {
            AnchorSource::Followed { file, text, .. } => (file, text.as_deref()),
            AnchorSource::Fixed { .. } => panic!("they are followed"),
        }
    }

    #[test]
    fn the_keys_of_the_root_are_followed_without_a_word() {
        let plans = compile("", &[]).expect("no mistakes");
        assert_eq!(followed(&plans), (Path::new("/var/lib/gannet/anchors/default.keys"), None));
        assert_eq!(plans[0].initial()[0].ds.len(), ROOT_DS.len());
        assert_eq!(compile("validation: \"off\"", &[]).expect("no mistakes"), []);
    }

    #[test]
    fn a_state_file_is_read_and_what_is_wrong_with_it_is_said_with_its_line() {
        let text = "trust-anchor-state: /state, add-hold-down: 1d, keep-missing: forever";
        let good = format!("; autotrust trust anchor file\n;;id: . 1\n;;query_failed: 3\n. IN DS {DS}\n");
        let plans = compile(text, &[("/state", &good)]).expect("no mistakes");
        assert_eq!(followed(&plans), (Path::new("/state"), Some(&*good)));
        let AnchorSource::Followed { hold_down, .. } = &plans[0].source else { panic!("they are followed") };
        assert_eq!((hold_down.add, hold_down.keep_missing), (86_400, None));
        assert_eq!(followed(&compile(text, &[]).expect("no mistakes")).1, None);
        let wrong = good.replace("failed: 3", "failed: three");
        let found = compile(text, &[("/state", &wrong)]).expect_err("a mistake");
        assert!(found.contains("\"/state\", line 3: expected a number as query_failed"), "{found}");
        assert!(found.starts_with("/x:1:"), "{found}");
    }
}
