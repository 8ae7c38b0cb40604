//! What the machine has, as far as this process may use it.

use std::path::{Component, Path, PathBuf};

/// How much memory may be used if nobody says otherwise: three quarters of the machine's, or of what a container or a job is held to.
pub(crate) fn memory_budget() -> u64 {
    const UNKNOWN: u64 = 8 << 30;
    let total = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = memory_limit(&groups, Path::new("/sys/fs/cgroup"));
    let most = total.map(|kibibytes| kibibytes * 1024).into_iter().chain(limit).min();
    most.map_or(UNKNOWN, |bytes| bytes / 4 * 3)
}

/// The least memory that the control groups of a process allow it, its own or one that this is in. `groups` is what the system says
/// they are; in a container its paths may be those of the world outside, and then the root stands for them.
fn memory_limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        // `0::/path` of version 2, `7:cpu,memory:/path` of version 1.
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            some if some.split(',').any(|one| one == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        let group: PathBuf =
            Path::new(path).components().filter(|one| matches!(one, Component::Normal(_))).collect();
        // Where there is no limit it says `max`, or nothing.
        let limit = |group: &Path| std::fs::read_to_string(root.join(group).join(file)).ok()?.trim().parse().ok();
        group.ancestors().filter_map(limit).min()
    });
    limits.min()
}

/// What the machine is called.
pub(crate) fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_the_closest_limit_leaves() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = root.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("slurm/job_1/memory.max", "2000\n");
        write("slurm/job_1/step_0/memory.max", "max\n");
        write("slurm/memory.max", "3000\n");
        write("memory/docker/a/memory.limit_in_bytes", "500\n");
        write("memory/memory.limit_in_bytes", "9223372036854771712\n");
        let limit = |groups: &str| memory_limit(groups, root.path());
        assert_eq!(limit("0::/slurm/job_1/step_0\n"), Some(2000));
        assert_eq!(limit("0::/slurm\n"), Some(3000));
        assert_eq!(limit("0::/elsewhere\n"), None);
        assert_eq!(limit("11:pids:/docker/a\n7:cpu,memory:/docker/a\n"), Some(500));
        // A container without a namespace of its own sees its group as the root, under the name that it has outside.
        assert_eq!(limit("7:memory:/docker/b\n"), Some(9_223_372_036_854_771_712));
        write("memory.max", "700\n");
        assert_eq!(limit("0::/../../kubepods/b\n"), Some(700));
        assert_eq!(limit("0::/slurm/job_1/step_0\n7:memory:/docker/a\n"), Some(500));
        assert_eq!(limit(""), None);
    }
}
