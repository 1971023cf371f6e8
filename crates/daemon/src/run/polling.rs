//! Chooses when workers poll (`server.stay-awake`).

use std::fs;
use std::path::Path;

use config::settings::StayAwake;
use engine::busy_poll::Polling;
use tracing::info;

/// Where control groups of version 2 are.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Returns when workers poll. Says so when `auto` means never.
pub(super) fn choose(setting: StayAwake, workers: usize, cores: &[usize]) -> Polling {
    match setting {
        StayAwake::False => Polling::Never,
        StayAwake::True => Polling::Always,
        StayAwake::Auto if workers > cores.len() => {
            info!(workers, processors = cores.len(), "workers do not poll: they share processors");
            Polling::Never
        }
        StayAwake::Auto if has_quota(Path::new(CONTROL_GROUPS)) => {
            info!("workers do not poll: the control group has a CPU quota");
            Polling::Never
        }
        StayAwake::Auto => Polling::Budgeted,
    }
}

/// Returns whether the control group of this process, or one above it, limits its processor time.
fn has_quota(root: &Path) -> bool {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    has_quota_in(root, &groups)
}

/// Looks through the groups of `/proc/self/cgroup`: those of version 2 have a line `0::/path`, those of version 1 one that
/// names the controller.
fn has_quota_in(root: &Path, groups: &str) -> bool {
    groups.lines().any(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return false };
        let (root, reads): (_, fn(&Path) -> bool) = match controllers {
            "" => (root.to_owned(), limits_2),
            _ if controllers.split(',').any(|one| one == "cpu") => (root.join(controllers), limits_1),
            _ => return false,
        };
        // Inside a container the path may be of the host: then only the top is there, which is the container's own.
        let path = root.join(path.trim_start_matches('/'));
        path.ancestors().take_while(|group| group.starts_with(&root)).any(reads)
    })
}

/// Reads `cpu.max`: a quota or `max`, and a period.
fn limits_2(group: &Path) -> bool {
    let text = fs::read_to_string(group.join("cpu.max")).unwrap_or_default();
    text.split_whitespace().next().is_some_and(|quota| quota != "max")
}

/// Reads `cpu.cfs_quota_us`, which is -1 without a quota.
fn limits_1(group: &Path) -> bool {
    let text = fs::read_to_string(group.join("cpu.cfs_quota_us")).unwrap_or_default();
    text.trim().parse::<i64>().is_ok_and(|quota| quota > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], groups: &str, expect: bool) {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        assert_eq!(has_quota_in(root.path(), groups), expect, "{files:?} {groups}");
    }

    #[test]
    fn a_quota_of_the_group_or_of_one_above_it_counts() {
        check(&[("a/b/cpu.max", "50000 100000\n")], "0::/a/b\n", true);
        check(&[("a/cpu.max", "50000 100000\n"), ("a/b/cpu.max", "max 100000\n")], "0::/a/b\n", true);
        check(&[("a/cpu.max", "max 100000\n"), ("a/b/cpu.max", "max 100000\n")], "0::/a/b\n", false);
        // In a container: the path is the host's, the files are the container's.
        check(&[("cpu.max", "50000 100000\n")], "0::/docker/1234\n", true);
        check(&[("cpu.max", "max 100000\n")], "0::/docker/1234\n", false);
        check(&[], "0::/\n", false);
        check(&[], "", false);
    }

    #[test]
    fn quotas_of_version_1_count_too() {
        check(&[("cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n")], "4:cpu,cpuacct:/a\n1:name=systemd:/\n", true);
        check(&[("cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n")], "4:cpu,cpuacct:/a\n", false);
        check(&[("cpuset/a/cpu.cfs_quota_us", "50000\n")], "4:cpuset:/a\n", false);
    }

    #[test]
    fn more_workers_than_processors_do_not_poll() {
        assert_eq!(choose(StayAwake::Auto, 3, &[0, 1]), Polling::Never);
        assert_eq!(choose(StayAwake::True, 3, &[0, 1]), Polling::Always);
        assert_eq!(choose(StayAwake::False, 1, &[0, 1]), Polling::Never);
    }
}
