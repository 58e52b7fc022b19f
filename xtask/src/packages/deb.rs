//! Debian's package: a tree as it will lie on the disk, packed by dpkg-deb.
//!
//! The program is one that is built. Its manual pages and completions are what it prints itself, the
//! libraries it needs what dpkg-shlibdeps finds in it. Everything else is in `packaging/deb`. Not by
//! cargo-deb: its own compile takes minutes of CI, and what it would save is the list below.

use std::fs;
use std::path::{Path, PathBuf};

use super::{broken, notices, read, shown};
use crate::ci::{Shell, Stop};

/// Files of `packaging/deb` as they are, with their mode, and where they go.
const AS_THEY_ARE: [(&str, &str, &str); 8] = [
    ("haulier.service", "644", "usr/lib/systemd/system/haulier.service"),
    ("haulier-service", "755", "usr/lib/haulier/service"),
    ("default", "644", "etc/default/haulier"),
    ("copyright", "644", "usr/share/doc/haulier/copyright"),
    ("overrides", "644", "usr/share/lintian/overrides/haulier"),
    ("postinst", "755", "DEBIAN/postinst"),
    ("prerm", "755", "DEBIAN/prerm"),
    ("postrm", "755", "DEBIAN/postrm"),
];

/// Where shells look for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/haulier"),
    ("zsh", "usr/share/zsh/vendor-completions/_haulier"),
    ("fish", "usr/share/fish/vendor_completions.d/haulier.fish"),
];

/// Builds the package with this program, and says where it is.
pub(super) fn build(shell: &Shell<'_>, program: &Path) -> Result<PathBuf, Stop> {
    let folder = shell.workspace.target.join("deb");
    let tree = folder.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree).map_err(|error| broken(&tree, &error))?;
    }
    let installed = tree.join("usr/bin/haulier");
    install(shell, program, "755", &installed)?;
    let sections = "--remove-section=.comment --remove-section=.note";
    let mut strip: Vec<&str> = sections.split(' ').collect();
    let at = shown(&installed);
    strip.extend(["--strip-unneeded", &at]);
    shell.run("strip", &strip)?;
    for (file, mode, to) in AS_THEY_ARE {
        let file = shell.workspace.root.join("packaging/deb").join(file);
        install(shell, &file, mode, &tree.join(to))?;
    }
    pages(shell, &installed, &tree)?;
    let doc = tree.join("usr/share/doc/haulier");
    let changelog = read(shell, "packaging/deb/changelog")?;
    write(&doc.join("changelog.Debian"), &changelog)?;
    write(&doc.join("changelog"), &read(shell, "CHANGELOG.md")?)?;
    write(&doc.join("third-party.txt"), &notices::of(shell, "haulier-cli")?)?;
    pack(shell, ["changelog.Debian", "changelog", "third-party.txt"].map(|name| doc.join(name)))?;
    control(shell, &changelog, &folder, &tree)
}

/// What the program prints of itself: manual pages, and completions.
fn pages(shell: &Shell<'_>, program: &Path, tree: &Path) -> Result<(), Stop> {
    let manual = tree.join("usr/share/man/man1");
    fs::create_dir_all(&manual).map_err(|error| broken(&manual, &error))?;
    shell.output(program, &["man", "--out", &shown(&manual)])?;
    let pages = fs::read_dir(&manual).map_err(|error| broken(&manual, &error))?;
    pack(shell, pages.flatten().map(|page| page.path()))?;
    for (name, to) in COMPLETIONS {
        write(&tree.join(to), &shell.output(program, &["completions", name])?)?;
    }
    Ok(())
}

/// The package's own description, and the package.
fn control(
    shell: &Shell<'_>,
    changelog: &str,
    folder: &Path,
    tree: &Path,
) -> Result<PathBuf, Stop> {
    let version =
        version(changelog).ok_or_else(|| "packaging/deb/changelog names no version".to_owned())?;
    let ours = env!("CARGO_PKG_VERSION");
    if !version.starts_with(&format!("{ours}-")) {
        let what = "packaging/deb/changelog: an entry for it is missing";
        return Err(format!("the version is {ours}, Debian's {version}; {what}").into());
    }
    let architecture = shell.output("dpkg".as_ref(), &["--print-architecture"])?;
    let architecture = architecture.trim();
    let size = shell.output("du".as_ref(), &["-sk", "--exclude=DEBIAN", &shown(tree)])?;
    let size = size.split_whitespace().next().unwrap_or_default().to_owned();
    // dpkg-shlibdeps wants to be where a source package would be.
    write(
        &folder.join("debian/control"),
        "Source: haulier\n\nPackage: haulier\nArchitecture: any\n",
    )?;
    let find =
        "cd \"$0\" && dpkg-shlibdeps -O tree/usr/bin/haulier 2>&1 | sed -n 's/^shlibs:Depends=//p'";
    let depends = shell.output("sh".as_ref(), &["-c", find, &shown(folder)])?;
    if depends.trim().is_empty() {
        return Err("dpkg-shlibdeps found no library that the program needs".to_owned().into());
    }
    let values = [
        ("@VERSION@", version),
        ("@ARCHITECTURE@", architecture),
        ("@INSTALLED_SIZE@", &size),
        ("@DEPENDS@", depends.trim()),
    ];
    let template = read(shell, "packaging/deb/control")?;
    let text = values.iter().fold(template, |text, (name, value)| text.replace(name, value));
    write(&tree.join("DEBIAN/control"), &text)?;
    write(&tree.join("DEBIAN/conffiles"), "/etc/default/haulier\n")?;
    let sums = "cd \"$0\" && find . -path ./DEBIAN -prune -o -type f -printf '%P\\0' | LC_ALL=C sort -z \
                | xargs -0 md5sum > DEBIAN/md5sums && chmod -R u+rwX,go+rX,go-w .";
    shell.output("sh".as_ref(), &["-c", sums, &shown(tree)])?;
    let deb = folder.join(format!("haulier_{version}_{architecture}.deb"));
    let (tree, to) = (shown(tree), shown(&deb));
    shell.run("dpkg-deb", &["--root-owner-group", "-Zxz", "--build", &tree, &to])?;
    Ok(deb)
}

/// The newest version of a changelog in Debian's form.
fn version(changelog: &str) -> Option<&str> {
    let (_, rest) = changelog.lines().next()?.split_once('(')?;
    rest.split_once(')').map(|(version, _)| version)
}

/// Packs files in their places; the same bytes each time.
fn pack(shell: &Shell<'_>, files: impl IntoIterator<Item = PathBuf>) -> Result<(), Stop> {
    let files: Vec<String> = files.into_iter().map(|file| shown(&file)).collect();
    let arguments: Vec<&str> =
        ["-9n"].into_iter().chain(files.iter().map(String::as_str)).collect();
    shell.output("gzip".as_ref(), &arguments).map(drop)
}

fn install(shell: &Shell<'_>, from: &Path, mode: &str, to: &Path) -> Result<(), Stop> {
    shell.run("install", &["-D", "-m", mode, &shown(from), &shown(to)])
}

fn write(path: &Path, text: &str) -> Result<(), Stop> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|error| broken(folder, &error))?;
    fs::write(path, text).map_err(|error| broken(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_is_the_first() {
        let changelog =
            "haulier (0.2.0-1) unstable; urgency=medium\n\nhaulier (0.1.0-1) unstable\n";
        assert_eq!(version(changelog), Some("0.2.0-1"));
        assert_eq!(version("haulier\n"), None);
    }
}
