//! Owners, groups and permission bits of everything on the way to a file.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::plugin::library;

const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
/// Entries of a folder with this bit are renamed and removed by their owners only.
const STICKY: u32 = 0o1000;
/// Where Linux has access lists.
#[cfg(target_os = "linux")]
const ACCESS_LIST: &str = "system.posix_acl_access";
/// As many links as Linux itself follows.
const MOST_LINKS: usize = 40;

/// Who may have written what is loaded.
pub(super) struct Trusted {
    users: BTreeSet<u32>,
    groups: BTreeSet<u32>,
}

impl Trusted {
    /// The user, root, and whoever owns or may write to the program and the folders above it: they could replace it, and so
    /// gain nothing by a library. On shared machines programs are often installed by an account that is neither.
    pub(super) fn of_this_program() -> Self {
        let mut trusted = Self { users: BTreeSet::from([0, library::user()]), groups: BTreeSet::new() };
        let program = std::env::current_exe().and_then(|program| program.canonicalize()).unwrap_or_default();
        for found in program.ancestors().filter_map(|path| path.symlink_metadata().ok()) {
            trusted.users.insert(found.uid());
            if found.mode() & (GROUP_WRITES | STICKY) == GROUP_WRITES {
                trusted.groups.insert(found.gid());
            }
        }
        trusted
    }

    /// What is wrong with the first thing on the way to a file, or to a folder of files, that somebody else could change.
    pub(super) fn refusal(&self, path: &Path) -> Option<String> {
        let mut rest = names(&std::path::absolute(path).ok()?);
        let mut at = PathBuf::from("/");
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                // No link is left in the path so far, so this is the folder above.
                at.pop();
                continue;
            }
            let folder = at.clone();
            at.push(name);
            // What is not there is said by whoever opens it.
            let found = at.symlink_metadata().ok()?;
            // In a folder like /tmp others cannot touch an entry, but put something beside it that a library asks for. A link to
            // a folder leads on as the folder does.
            let leads_on = at.is_dir() || !rest.is_empty();
            if let Some(reason) = self.changeable(&folder, &folder.symlink_metadata().ok()?, leads_on) {
                return Some(reason);
            }
            if found.is_symlink() {
                if let Some(reason) = self.foreign(&at, &found) {
                    return Some(reason);
                }
                links += 1;
                if links > MOST_LINKS {
                    return Some(format!("{} leads through too many links", path.display()));
                }
                let target = at.read_link().ok()?;
                at = if target.is_absolute() { PathBuf::from("/") } else { folder };
                rest.extend(names(&target));
            }
        }
        let found = at.symlink_metadata().ok()?;
        if !found.is_file() && !found.is_dir() {
            return Some(format!("{} is no file", at.display()));
        }
        self.changeable(&at, &found, false)
    }

    /// Whether somebody else may change a file, or what a folder has.
    fn changeable(&self, path: &Path, found: &Metadata, may_be_sticky: bool) -> Option<String> {
        let path_text = path.display();
        if let Some(reason) = self.foreign(path, found) {
            return Some(reason);
        }
        if found.is_dir() && found.mode() & STICKY != 0 && may_be_sticky {
            return None;
        }
        if found.mode() & OTHERS_WRITE != 0 {
            return Some(format!("anyone may write to {path_text}; chmod o-w {path_text}"));
        }
        if found.mode() & GROUP_WRITES != 0 && has_access_list(path) {
            return Some(format!("an access list says who may write to {path_text}; setfacl -b {path_text}"));
        }
        if found.mode() & GROUP_WRITES != 0 && !self.groups.contains(&found.gid()) {
            let accounts = Accounts::read();
            if !accounts.only(found.gid(), &self.users) {
                let group = accounts.group(found.gid());
                return Some(format!(
                    "everyone in the group {group} may write to {path_text}; chmod g-w {path_text}"
                ));
            }
        }
        None
    }

    /// Whether somebody else owns it, and so may change it whatever its permissions are.
    fn foreign(&self, path: &Path, found: &Metadata) -> Option<String> {
        let owner = found.uid();
        (!self.users.contains(&owner)).then(|| {
            let name = Accounts::read().user(owner);
            format!(
                "{} belongs to {name}, who is neither you nor root; \
                 copy the library to a folder of your own if you trust it",
                path.display()
            )
        })
    }
}

/// Whether more people than the owner, the group and others have rights to something. What they may do at most is shown as the
/// rights of the group.
#[cfg(target_os = "linux")]
fn has_access_list(path: &Path) -> bool {
    rustix::fs::lgetxattr_query(path, ACCESS_LIST).is_ok()
}

/// Elsewhere they are not looked at.
#[cfg(not(target_os = "linux"))]
fn has_access_list(_path: &Path) -> bool {
    false
}

/// The names in a path, the last first.
fn names(path: &Path) -> Vec<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(name).collect()
}

/// The users and groups that the machine itself knows. Those of a directory service are not among them, and a group of it
/// counts as one of several people.
struct Accounts {
    users: String,
    groups: String,
}

impl Accounts {
    fn read() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self { users: read("/etc/passwd"), groups: read("/etc/group") }
    }

    /// Whether a group is known to have no members but these users: many systems give every user a group of their own, and let
    /// it write to all that the user makes.
    fn only(&self, group: u32, users: &BTreeSet<u32>) -> bool {
        let trusted = |id: &str| id.parse().is_ok_and(|id| users.contains(&id));
        let Some(entry) = find(&self.groups, 2, &group.to_string()) else { return false };
        let mut members =
            entry.get(3).into_iter().flat_map(|members| members.split(',')).filter(|name| !name.is_empty());
        let named =
            |name: &str| find(&self.users, 0, name).is_some_and(|user| user.get(2).is_some_and(|id| trusted(id)));
        let mut primary = entries(&self.users).filter(|user| user.get(3) == Some(&group.to_string().as_str()));
        members.all(named) && primary.all(|user| user.get(2).is_some_and(|id| trusted(id)))
    }

    fn user(&self, id: u32) -> String {
        name(&self.users, id)
    }

    fn group(&self, id: u32) -> String {
        name(&self.groups, id)
    }
}

/// The fields of every line.
fn entries(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

/// The first line that has a value in a field.
fn find<'t>(text: &'t str, field: usize, value: &str) -> Option<Vec<&'t str>> {
    entries(text).find(|entry| entry.get(field) == Some(&value))
}

/// What a number is called: by its name where it has one.
fn name(text: &str, id: u32) -> String {
    let entry = find(text, 2, &id.to_string());
    entry.and_then(|entry| entry.first().map(ToString::to_string)).unwrap_or_else(|| id.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir_all, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// A folder with a library three levels down, and what is said of it, with the folder's own name left out.
    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            create_dir_all(place.path("a/b")).unwrap();
            write(place.path("a/b/lib.so"), "x").unwrap();
            for (path, mode) in [("a", 0o755), ("a/b", 0o755), ("a/b/lib.so", 0o644)] {
                place.chmod(path, mode);
            }
            place
        }

        fn path(&self, path: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(path)
        }

        fn chmod(&self, path: &str, mode: u32) {
            set_permissions(self.path(path), Permissions::from_mode(mode)).unwrap();
        }

        fn said(&self, path: &str) -> String {
            let reason = Trusted::of_this_program().refusal(&self.path(path)).unwrap_or_default();
            reason.replace(&self.path("").display().to_string(), "")
        }
    }

    #[test]
    fn a_library_that_only_its_owner_may_change_is_loaded() {
        let place = Place::new();
        assert_eq!(place.said("a/b/lib.so"), "");
        assert_eq!(place.said("a/b"), "");
        assert_eq!(place.said("a/none.so"), "", "opening it says that");
    }

    #[test]
    fn every_folder_above_counts() {
        for (path, open, closed) in [("a", 0o757, 0o755), ("a/b", 0o757, 0o755), ("a/b/lib.so", 0o646, 0o644)] {
            let place = Place::new();
            place.chmod(path, open);
            assert_eq!(place.said("a/b/lib.so"), format!("anyone may write to {path}; chmod o-w {path}"));
            place.chmod(path, closed);
            assert_eq!(place.said("a/b/lib.so"), "");
        }
    }

    #[test]
    fn a_folder_like_tmp_may_lie_above_but_not_hold_libraries() {
        let place = Place::new();
        place.chmod("a", 0o1777);
        assert_eq!(place.said("a/b/lib.so"), "");
        place.chmod("a/b", 0o1777);
        assert_eq!(place.said("a/b/lib.so"), "anyone may write to a/b; chmod o-w a/b");
        assert_eq!(place.said("a/b"), "anyone may write to a/b; chmod o-w a/b");
        // Not by detours either.
        symlink("b/../b/lib.so", place.path("a/link.so")).unwrap();
        place.chmod("a", 0o755);
        assert_eq!(place.said("a/link.so"), "anyone may write to a/b; chmod o-w a/b");
    }

    #[test]
    fn links_are_followed_through_every_folder_that_they_name() {
        let place = Place::new();
        create_dir_all(place.path("open/inner")).unwrap();
        create_dir_all(place.path("links")).unwrap();
        place.chmod("open/inner", 0o755);
        symlink(place.path("a"), place.path("open/inner/a")).unwrap();
        symlink("../open/inner/a/b/lib.so", place.path("links/lib.so")).unwrap();
        place.chmod("open", 0o755);
        assert_eq!(place.said("links/lib.so"), "");
        // The link's target is fine, and its own folder, but not one in between.
        place.chmod("open", 0o777);
        assert_eq!(place.said("links/lib.so"), "anyone may write to open; chmod o-w open");
        symlink("round.so", place.path("links/round.so")).unwrap();
        assert_eq!(place.said("links/round.so"), "links/round.so leads through too many links");
    }

    #[test]
    fn a_link_to_a_folder_may_lie_in_one_like_tmp_and_not_where_anyone_may_replace_it() {
        let place = Place::new();
        create_dir_all(place.path("links")).unwrap();
        symlink("../a/b", place.path("links/b")).unwrap();
        symlink("../a/b/lib.so", place.path("links/lib.so")).unwrap();
        place.chmod("links", 0o1777);
        assert_eq!(place.said("links/b"), "");
        assert_eq!(place.said("links/lib.so"), "anyone may write to links; chmod o-w links");
        place.chmod("links", 0o777);
        assert_eq!(place.said("links/b"), "anyone may write to links; chmod o-w links");
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_loaded() {
        let place = Place::new();
        let nobody = Trusted { users: BTreeSet::new(), groups: BTreeSet::new() };
        let reason = nobody.refusal(&place.path("a/b/lib.so")).unwrap();
        assert!(reason.starts_with("/ belongs to root, who is neither you nor root; copy"), "{reason}");
        let mut found = place.path("a/b/lib.so").symlink_metadata().unwrap().uid();
        if found == 0 {
            // Only root can give files away.
            found = 12_345;
            std::os::unix::fs::chown(place.path("a/b/lib.so"), Some(found), None).unwrap();
            let reason = Trusted::of_this_program().refusal(&place.path("a/b/lib.so")).unwrap();
            assert!(reason.contains("lib.so belongs to 12345, who is neither you nor root"), "{reason}");
        }
    }

    #[test]
    fn a_group_of_several_people_may_not_write() {
        let accounts = Accounts {
            users: "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/:\nbob:x:1001:100::/:\n".to_owned(),
            groups: "root:x:0:\nann:x:1000:\nteam:x:50:ann,bob\nlone:x:51:ann\nusers:x:100:\nempty:x:52:\nodd:x:53:carl"
                .to_owned(),
        };
        let ann = BTreeSet::from([0, 1000]);
        let fine = |group| accounts.only(group, &ann);
        assert_eq!([0, 1000, 51, 52].map(fine), [true; 4], "nobody but her and root");
        assert_eq!([50, 100, 53, 7777].map(fine), [false; 4], "bob, bob, somebody unknown, an unknown group");
        assert_eq!(accounts.group(50), "team");
    }

    /// As `setfacl -m u:12345:rwx` writes it: version, then tag, rights and number of every entry.
    #[test]
    #[cfg(target_os = "linux")]
    fn whoever_an_access_list_names_may_not_write() {
        let list = |rights: u16| {
            let unnamed = u32::MAX;
            let entries: [(u16, u16, u32); 5] = [
                (1, 7, unnamed),
                (2, rights, 12_345),
                (4, 5, unnamed),
                (0x10, rights | 5, unnamed),
                (0x20, 5, unnamed),
            ];
            let entry = |(tag, rights, id): (u16, u16, u32)| {
                [&tag.to_le_bytes()[..], &rights.to_le_bytes(), &id.to_le_bytes()].concat()
            };
            [&2u32.to_le_bytes()[..], &entries.map(entry).concat()].concat()
        };
        for path in ["a", "a/b", "a/b/lib.so"] {
            let place = Place::new();
            let set = |rights: u16| {
                rustix::fs::setxattr(place.path(path), ACCESS_LIST, &list(rights), rustix::fs::XattrFlags::empty())
            };
            // A file system without them has no such danger.
            let Ok(()) = set(5) else { return };
            assert_eq!(place.said("a/b/lib.so"), "", "they may read");
            set(7).unwrap();
            let said = place.said("a/b/lib.so");
            assert_eq!(said, format!("an access list says who may write to {path}; setfacl -b {path}"));
        }
    }

    #[test]
    fn nothing_but_files_is_opened() {
        let place = Place::new();
        let socket = std::os::unix::net::UnixListener::bind(place.path("a/s.so")).unwrap();
        place.chmod("a/s.so", 0o755);
        assert_eq!(place.said("a/s.so"), "a/s.so is no file");
        drop(socket);
    }
}
