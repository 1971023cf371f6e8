//! Chooses when workers poll (`server.stay-awake`).

use std::fs;
use std::path::Path;

use ::polling::Polling;
use settings::StayAwake;
use tracing::info;

/// Where control groups of version 2 are.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Returns when workers poll. Says so when `auto` means never.
pub(crate) fn choose(setting: StayAwake, workers: usize, cores: &[usize]) -> Polling {
    decide(setting, workers, cores, quota(Path::new(CONTROL_GROUPS)))
}

fn decide(setting: StayAwake, workers: usize, cores: &[usize], quota: Option<u32>) -> Polling {
    match setting {
        StayAwake::False => Polling::Never,
        StayAwake::True => Polling::Always,
        StayAwake::Auto if workers > cores.len() && quota.is_none() => {
            info!(workers, processors = cores.len(), "workers do not poll: they share processors");
            Polling::Never
        }
        StayAwake::Auto => match quota {
            Some(quota) => {
                info!(
                    thousandths = quota,
                    "workers do not poll, and let queries gather when little is left: the control group has a CPU quota"
                );
                Polling::Sparing { quota }
            }
            None => Polling::Budgeted,
        },
    }
}

/// Returns the processor time that the control group of this process, or one above it, allows, in
/// thousandths of a processor; `None` without a limit.
fn quota(root: &Path) -> Option<u32> {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    quota_in(root, &groups)
}

/// Looks through the groups of `/proc/self/cgroup`: those of version 2 have a line `0::/path`,
/// those of version 1 one that names the controller.
fn quota_in(root: &Path, groups: &str) -> Option<u32> {
    let of_each = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let (root, reads): (_, fn(&Path) -> Option<u32>) = match controllers {
            "" => (root.to_owned(), limit_2),
            _ if controllers.split(',').any(|one| one == "cpu") => (root.join(controllers), limit_1),
            _ => return None,
        };
        // Inside a container the path may be of the host: then only the top is there, which is the
        // container's own.
        let path = root.join(path.trim_start_matches('/'));
        path.ancestors().take_while(|group| group.starts_with(&root)).filter_map(reads).min()
    });
    of_each.min()
}

/// Reads `cpu.max`: a quota or `max`, and a period.
fn limit_2(group: &Path) -> Option<u32> {
    let text = fs::read_to_string(group.join("cpu.max")).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    thousandths(quota, period)
}

/// Reads `cpu.cfs_quota_us`, which is -1 without a quota, and `cpu.cfs_period_us`.
fn limit_1(group: &Path) -> Option<u32> {
    let read = |name| fs::read_to_string(group.join(name)).ok();
    thousandths(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?)
}

/// Returns a quota in thousandths of a processor; `None` if it is no number.
fn thousandths(quota: &str, period: &str) -> Option<u32> {
    let (quota, period): (u64, u64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    u32::try_from(quota.checked_mul(1000)?.checked_div(period)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], groups: &str, expect: Option<u32>) {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        assert_eq!(quota_in(root.path(), groups), expect, "{files:?} {groups}");
    }

    #[test]
    fn a_quota_of_the_group_or_of_one_above_it_counts() {
        check(&[("a/b/cpu.max", "50000 100000\n")], "0::/a/b\n", Some(500));
        check(&[("a/cpu.max", "50000 100000\n"), ("a/b/cpu.max", "max 100000\n")], "0::/a/b\n", Some(500));
        check(&[("a/cpu.max", "max 100000\n"), ("a/b/cpu.max", "max 100000\n")], "0::/a/b\n", None);
        // In a container: the path is the host's, the files are the container's.
        check(&[("cpu.max", "50000 100000\n")], "0::/docker/1234\n", Some(500));
        check(&[("cpu.max", "max 100000\n")], "0::/docker/1234\n", None);
        let nested = [("a/cpu.max", "25000 100000\n"), ("a/b/cpu.max", "50000 100000\n")];
        check(&nested, "0::/a/b\n", Some(250));
        check(&[], "0::/\n", None);
        check(&[], "", None);
    }

    #[test]
    fn quotas_of_version_1_count_too() {
        let limited =
            [("cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n"), ("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n")];
        check(&limited, "4:cpu,cpuacct:/a\n1:name=systemd:/\n", Some(1500));
        check(&[("cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n")], "4:cpu,cpuacct:/a\n", None);
        check(&[("cpuset/a/cpu.cfs_quota_us", "50000\n")], "4:cpuset:/a\n", None);
    }

    #[test]
    fn a_quota_is_spared_unless_the_operator_decides() {
        for workers in [1, 3] {
            let quota = Some(500);
            assert_eq!(decide(StayAwake::Auto, workers, &[0, 1], quota), Polling::Sparing { quota: 500 });
            assert_eq!(decide(StayAwake::True, workers, &[0, 1], quota), Polling::Always);
            assert_eq!(decide(StayAwake::False, workers, &[0, 1], quota), Polling::Never);
        }
    }

    #[test]
    fn more_workers_than_processors_do_not_poll() {
        assert_eq!(decide(StayAwake::Auto, 3, &[0, 1], None), Polling::Never);
        assert_eq!(decide(StayAwake::Auto, 2, &[0, 1], None), Polling::Budgeted);
        assert_eq!(decide(StayAwake::True, 3, &[0, 1], None), Polling::Always);
        assert_eq!(decide(StayAwake::False, 1, &[0, 1], None), Polling::Never);
    }
}
