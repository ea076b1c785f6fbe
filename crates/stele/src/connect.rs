//! Which server a command speaks with, and by which key.
//!
//! Flags, else the environment, else the default profile, else the server on this machine with the admin key that it
//! put away here. That key goes to this machine only: an address from elsewhere must come with a key of its own.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use stele_client::Client;

use crate::cli::ClientFlags;
use crate::config::{Env, default_data_dir, process_env, user_config_dir};
use crate::failure::{Class, fail};
use crate::first_start::admin_key_file;

const URL: &str = "http://127.0.0.1:7878";
const FILE: &str = "profiles.toml";

/// The file of profiles.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profiles {
    /// The profile that counts where none is named.
    default: Option<String>,
    #[serde(default)]
    profiles: BTreeMap<String, Profile>,
}

/// A server with a key, or with the file that holds it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    url: Option<String>,
    api_key: Option<String>,
    api_key_file: Option<PathBuf>,
}

/// A client as flags, environment and profiles say.
pub(crate) fn client(flags: &ClientFlags) -> anyhow::Result<Client> {
    let (url, key) = server(flags, &process_env)?;
    Ok(Client::new(&url, key))
}

fn server(flags: &ClientFlags, env: Env<'_>) -> anyhow::Result<(String, String)> {
    let named = flags.profile.clone().or_else(|| env("STELE_PROFILE"));
    let profile = match named {
        Some(name) => Some(profile(Some(&name), env)?),
        None if env("STELE_URL").is_some() || env("STELE_API_KEY").is_some() || flags.url.is_some() => None,
        None => Some(profile(None, env)?),
    };
    let explicit = flags.profile.is_some();
    let of_profile = profile.as_ref().and_then(|p| p.url.clone());
    let (first, second) =
        if explicit { (of_profile, env("STELE_URL")) } else { (env("STELE_URL"), of_profile) };
    let url = flags.url.clone().or(first).or(second).unwrap_or_else(|| URL.into());
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err(fail(
            Class::Usage,
            format!("the address must begin with http:// or https://, not {url:?}"),
        ));
    }
    let of_profile = || profile.as_ref().map(profile_key).transpose().map(Option::flatten);
    let key = if explicit { of_profile()? } else { None };
    let key = match key.or_else(|| env("STELE_API_KEY")) {
        Some(key) => key,
        None => match of_profile()? {
            Some(key) => key,
            None => local_key(&url, env)?,
        },
    };
    Ok((url, key.trim().to_owned()))
}

fn profile(name: Option<&str>, env: Env<'_>) -> anyhow::Result<Profile> {
    let none = Profile { url: None, api_key: None, api_key_file: None };
    let file = user_config_dir(env).map(|dir| dir.join(FILE));
    let read = file.as_ref().filter(|file| file.exists()).map(|file| read(file)).transpose()?;
    let profiles = read.unwrap_or_default();
    let Some(name) = name.map(str::to_owned).or(profiles.default) else { return Ok(none) };
    profiles.profiles.get(&name).cloned().ok_or_else(|| {
        let file = file.map_or_else(|| FILE.into(), |file| file.display().to_string());
        fail(
            Class::NotFound,
            format!("there is no profile {name:?} in {file}: add a table [profiles.{name}]"),
        )
    })
}

fn read(file: &Path) -> anyhow::Result<Profiles> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mode = std::fs::metadata(file).map_or(0, |about| about.mode());
    if mode & 0o077 != 0 && text.contains("api_key ") {
        let file = file.display();
        crate::output::complain(&format!("others can read the keys in {file}: chmod 600 {file}"));
    }
    toml::from_str(&text).with_context(|| format!("{} is not a valid file of profiles", file.display()))
}

fn profile_key(profile: &Profile) -> anyhow::Result<Option<String>> {
    match (&profile.api_key, &profile.api_key_file) {
        (Some(key), _) => Ok(Some(key.clone())),
        (None, Some(file)) => Ok(Some(
            std::fs::read_to_string(file)
                .with_context(|| format!("cannot read the profile's key in {}", file.display()))?,
        )),
        (None, None) => Ok(None),
    }
}

/// The admin key of the server on this machine.
fn local_key(url: &str, env: Env<'_>) -> anyhow::Result<String> {
    if !is_local(url) {
        let message =
            format!("there is no API key for {url}: set STELE_API_KEY, or make a profile for that server");
        return Err(fail(Class::Forbidden, message));
    }
    let path = admin_key_file(&default_data_dir(env)?);
    std::fs::read_to_string(&path).map_err(|cause| {
        let message = format!(
            "there is no API key: set STELE_API_KEY, or start a server here with `stele serve` ({}: {cause})",
            path.display()
        );
        fail(Class::Forbidden, message)
    })
}

fn is_local(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return false;
    }
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(dir: &Path, vars: &[(&str, &str)], flags: &ClientFlags) -> anyhow::Result<(String, String)> {
        let home = dir.display().to_string();
        let env = |name: &str| match name {
            "XDG_CONFIG_HOME" | "XDG_DATA_HOME" => Some(home.clone()),
            _ => vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()),
        };
        server(flags, &env)
    }

    fn flags(url: Option<&str>, profile: Option<&str>) -> ClientFlags {
        ClientFlags { url: url.map(Into::into), profile: profile.map(Into::into), json: false }
    }

    #[test]
    fn flags_environment_profile_and_local_key_come_in_this_order() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("stele");
        std::fs::create_dir(&dir).expect("a directory");
        std::fs::write(dir.join("admin-key"), "local\n").expect("written");
        let pair = |url: &str, key: &str| (url.to_owned(), key.to_owned());
        let get = |vars: &[_], flags| found(home.path(), vars, &flags).expect("a server");
        assert_eq!(get(&[], flags(None, None)), pair(URL, "local"));
        let file = "default = 'd'\n[profiles.d]\nurl = 'https://d'\napi_key = 'kd'\n[profiles.w]\nurl = 'https://w'\n\
                    api_key = 'kw'\n";
        std::fs::write(dir.join(FILE), file).expect("written");
        assert_eq!(get(&[], flags(None, None)), pair("https://d", "kd"));
        let vars = [("STELE_URL", "https://e"), ("STELE_API_KEY", "ke")];
        assert_eq!(get(&vars, flags(None, None)), pair("https://e", "ke"));
        assert_eq!(get(&vars, flags(None, Some("w"))), pair("https://w", "kw"));
        assert_eq!(get(&vars, flags(Some("https://f"), None)), pair("https://f", "ke"));
        let missing = found(home.path(), &[], &flags(None, Some("x"))).expect_err("no profile");
        assert!(missing.to_string().contains("profiles.x"), "{missing}");
    }

    #[test]
    fn the_local_admin_key_goes_to_this_machine_only() {
        for local in ["http://127.0.0.1:1/", "http://localhost", "http://[::1]:80/x"] {
            assert!(is_local(local), "{local}");
        }
        for other in [
            "http://example.com",
            "http://localhost@example.com",
            "http://127.0.0.1.example.com",
            "https://[::2]",
        ] {
            assert!(!is_local(other), "{other}");
            let home = tempfile::tempdir().expect("a directory");
            let refused = found(home.path(), &[], &flags(Some(other), None)).expect_err("no key");
            assert!(refused.to_string().contains("STELE_API_KEY"), "{refused}");
        }
    }
}
