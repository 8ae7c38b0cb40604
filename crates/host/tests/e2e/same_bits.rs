//! The same bits on processors with and without what the C library's functions make use of.

use crate::common::Folder;

/// Every clusterer that comes along, on made-up data.
pub(crate) const ALL: &str = r#"
name = "all"
seed = 5
memberships = true

[composer]
use = "mean"

[[data]]
name = "made"
loader = "synthetic"
params = { n = 60, dim = 5, k = 3, noise = 0.4, trials = 2 }

[[clusterer]]
use = "ckm"
params = { k = 3 }
[[clusterer]]
use = "cgm"
params = { k = 3 }
[[clusterer]]
use = "cap"
[[clusterer]]
use = "gcr"
params = { base = { use = "kmeans", params = { k = 6 } } }
[[clusterer]]
use = "kmeans"
params = { k = 4 }
[[clusterer]]
use = "ac"
params = { k = 4 }
[[clusterer]]
use = "ap"
[[clusterer]]
name = "fcm"
use = "fcm"
params = { k = 4 }
[[clusterer]]
name = "fcm 1.7"
use = "fcm"
params = { k = 4, m = 1.7 }
[[clusterer]]
use = "gmm"
params = { k = 4 }

[[evaluator]]
use = "cri"
[[evaluator]]
use = "nmi"
[[evaluator]]
use = "ami"
"#;

#[test]
fn results_do_not_depend_on_the_c_librarys_choice_of_functions() {
    let folder = Folder::new();
    folder.write("all.toml", ALL);
    let run = |out: &str, masked: &str| {
        let mut command = folder.compflow(&["run", "all.toml", "--out", out, "--quiet"]);
        let output = command.env("GLIBC_TUNABLES", format!("glibc.cpu.hwcaps={masked}")).output().unwrap();
        crate::common::finished(output, 0);
    };
    run("with", "");
    run("without", "-AVX2,-AVX2_Usable,-FMA,-FMA_Usable,-FMA4,-FMA4_Usable,-AVX_Fast_Unaligned_Load");
    for table in ["metrics", "assignments", "clusters", "memberships", "traces"] {
        let read = |out: &str| std::fs::read(folder.path(&format!("{out}/{table}.parquet"))).unwrap();
        assert!(read("with") == read("without"), "{table} differs");
    }
}
