//! How much processor time the control group of this process may use.
//!
//! A group without cores of its own may still be given, say, two seconds of processor time per second, on whatever
//! cores (containers are confined so). More ranks than that outnumber the cores just as they would under an affinity
//! mask. What the groups above it may use, up to the mount, bounds a group as well.

use std::fs::read_to_string;
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// The cores that this process's group may keep busy; `None` without a limit. It is looked for once.
pub fn quota() -> Option<f64> {
    static QUOTA: OnceLock<Option<f64>> = OnceLock::new();
    *QUOTA.get_or_init(|| read(Path::new(MOUNT), &read_to_string("/proc/self/cgroup").ok()?))
}

/// `membership` is the text of `/proc/self/cgroup`: lines of `number:controllers:path`, the controllers empty in
/// version 2.
fn read(mount: &Path, membership: &str) -> Option<f64> {
    let groups: Vec<(&str, &str)> =
        membership.lines().filter_map(|line| line.split_once(':')?.1.split_once(':')).collect();
    let of_version_1 = groups.iter().find(|(controllers, _)| controllers.split(',').any(|name| name == "cpu"));
    if let Some((controllers, path)) = of_version_1 {
        let hierarchy = [mount.join("cpu"), mount.join(controllers)].into_iter().find(|place| place.is_dir())?;
        return smallest(&hierarchy, path, |group| {
            let number = |file: &str| read_to_string(group.join(file)).ok();
            cores(&number("cpu.cfs_quota_us")?, &number("cpu.cfs_period_us")?)
        });
    }
    let (_, path) = groups.iter().find(|(controllers, _)| controllers.is_empty())?;
    smallest(mount, path, |group| {
        let text = read_to_string(group.join("cpu.max")).ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        cores(quota, period)
    })
}

/// The smallest of a group and those above it. In a container the path may be one of the host's, and what is mounted is
/// the group itself.
fn smallest(hierarchy: &Path, path: &str, read: impl Fn(&Path) -> Option<f64>) -> Option<f64> {
    let path = Path::new(path.trim_start_matches('/'));
    let inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let place = hierarchy.join(path);
    let group: PathBuf = if inside && place.is_dir() { place } else { hierarchy.to_owned() };
    let upwards = group.ancestors().take_while(|above| above.starts_with(hierarchy));
    upwards.filter_map(read).reduce(f64::min)
}

/// Microseconds of processor time in a period of so many. `max` and -1 mean no limit.
fn cores(quota: &str, period: &str) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| *number > 0.0);
    Some(number(quota)? / number(period)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn a_quota_is_so_many_cores_or_none() {
        let cases = [
            ("100000", "100000", Some(1.0)),
            ("250000", "100000", Some(2.5)),
            ("50000", "100000", Some(0.5)),
            (" 400000\n", "100000\n", Some(4.0)),
            ("max", "100000", None),
            ("-1", "100000", None),
            ("100000", "0", None),
            ("", "", None),
        ];
        for (quota, period, wanted) in cases {
            assert_eq!(cores(quota, period), wanted, "{quota} in {period}");
        }
    }

    #[test]
    fn version_2_is_read_from_the_group_of_the_process_and_those_above() {
        let made = tempfile::tempdir().expect("a directory");
        let file = |path: &str, text: &str| {
            let place = made.path().join(path);
            create_dir_all(place.parent().expect("inside")).and_then(|()| write(place, text)).expect("written");
        };
        file("cpu.max", "700000 100000\n");
        file("job/one/cpu.max", "150000 50000\n");
        file("job/two/cpu.max", "max 100000\n");
        file("job/three/memory.max", "max\n");
        let cores = |membership: &str| read(made.path(), membership);
        assert_eq!(cores("0::/job/one\n"), Some(3.0));
        assert_eq!(cores("0::/job/two\n"), Some(7.0));
        assert_eq!(cores("0::/job/three\n"), Some(7.0), "the processor is not controlled here");
        assert_eq!(cores("0::/\n"), Some(7.0));
        assert_eq!(cores("0::/docker/of-the-host\n"), Some(7.0), "what is mounted is the container's group");
        let beside = made.path().file_name().expect("a name").to_str().expect("ASCII");
        let climbing = format!("0::/../{beside}/job/one\n");
        assert_eq!(cores(&climbing), Some(7.0), "a path that leads out of what is mounted is not followed");
        assert_eq!(cores("3:memory:/job/one\n0::/job/one\n"), Some(3.0));
        assert_eq!(cores("nonsense\n"), None);
    }

    #[test]
    fn version_1_is_read_from_two_files() {
        let made = tempfile::tempdir().expect("a directory");
        let file = |path: &str, text: &str| {
            let place = made.path().join(path);
            create_dir_all(place.parent().expect("inside")).and_then(|()| write(place, text)).expect("written");
        };
        file("cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
        file("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
        file("cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
        file("cpu,cpuacct/cpu.cfs_period_us", "100000\n");
        file("job/cpu.max", "900000 100000\n");
        let membership = |path| format!("5:cpuset:/\n4:cpu,cpuacct:{path}\n0::/job\n");
        assert_eq!(read(made.path(), &membership("/job")), Some(2.0), "not what version 2 says");
        assert_eq!(read(made.path(), &membership("/")), None);
    }
}
