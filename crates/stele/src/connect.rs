//! Which server a command speaks with, and by which key.
//!
//! Flags, else the environment, else the default profile, else the server on this machine with the admin key that it
//! put away here. That key goes to this machine only: an address from elsewhere must come with a key of its own.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use stele_client::{Client, is_loopback, same_origin};

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

impl Profiles {
    /// Whether a key stands in the file itself.
    fn hold_keys(&self) -> bool {
        self.profiles.values().any(|profile| profile.api_key.is_some())
    }
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

/// The address of the server and the key for it, as flags, environment and profiles say.
pub(crate) fn address_and_key(flags: &ClientFlags) -> anyhow::Result<(String, String)> {
    server(flags, &process_env)
}

/// A client of the server that runs on this data directory: with the admin key there, unless another is given.
pub(crate) fn client_at(flags: &ClientFlags, data_dir: &Path) -> anyhow::Result<Client> {
    let data_dir = data_dir.to_str().map(str::to_owned);
    let env = |name: &str| if name == "STELE_DATA_DIR" { data_dir.clone() } else { process_env(name) };
    let (url, key) = server(flags, &env)?;
    Ok(Client::new(&url, key))
}

/// Clients of two servers, each with the key in the variable that is named for it; else as for any command. One and
/// the same key never goes to both without being named.
pub(crate) fn client_pair(of: [(&str, Option<&str>); 2]) -> anyhow::Result<[Client; 2]> {
    let [(one, one_key), (other, other_key)] = of;
    let both = one_key.is_none() && other_key.is_none() && process_env("STELE_API_KEY").is_some();
    if both && !same_origin(one, other) {
        let message = "which server is STELE_API_KEY for? Name the variable with each key: --from-key-env, --to-key-env";
        return Err(fail(Class::Usage, message));
    }
    let client = |url: &str, key: Option<&str>| {
        let env = |name: &str| match key {
            Some(own) if name == "STELE_API_KEY" => process_env(own),
            _ => process_env(name),
        };
        if let Some(name) = key.filter(|name| process_env(name).is_none()) {
            return Err(fail(Class::Usage, format!("there is no key in the environment variable {name}")));
        }
        let flags = ClientFlags { url: Some(url.to_owned()), profile: None, json: false };
        let (url, key) = server(&flags, &env)?;
        Ok(Client::new(&url, key))
    };
    Ok([client(one, one_key)?, client(other, other_key)?])
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
    let of_profile = || -> anyhow::Result<Option<Key>> {
        let Some(profile) = &profile else { return Ok(None) };
        let Some(text) = profile_key(profile)? else { return Ok(None) };
        match &profile.url {
            Some(own) if !same_origin(own, &url) => {
                let message = format!(
                    "the profile's key is for {own} and is not sent to {url}: leave out one of the two, or make a \
                     profile for {url}"
                );
                Err(fail(Class::Usage, message))
            }
            _ => Ok(Some(Key { text, source: "the profile's key".into() })),
        }
    };
    let of_env = || env("STELE_API_KEY").map(|text| Key { text, source: "STELE_API_KEY".into() });
    let key = match if explicit { of_profile()? } else { None }.or_else(of_env) {
        Some(key) => key,
        None => match of_profile()? {
            Some(key) => key,
            None => Key { text: local_key(&url, env)?, source: "the admin key in the data directory".into() },
        },
    };
    Ok((url, key.checked()?))
}

/// A key, and what to call it where it is wrong.
struct Key {
    text: String,
    source: String,
}

impl Key {
    /// The key as it goes into a header, without space around it.
    fn checked(&self) -> anyhow::Result<String> {
        let key = self.text.trim();
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_graphic()) {
            let source = &self.source;
            let message = format!("{source} is no key: it must be one word of printable ASCII characters");
            return Err(fail(Class::Usage, message));
        }
        Ok(key.to_owned())
    }
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
    let profiles: Profiles = toml::from_str(&text)
        .with_context(|| format!("{} is not a valid file of profiles", file.display()))?;
    let mode = std::fs::metadata(file).map_or(0, |about| about.mode());
    if mode & 0o077 != 0 && profiles.hold_keys() {
        let file = file.display();
        crate::output::complain(&format!("others can read the keys in {file}: chmod 600 {file}"));
    }
    Ok(profiles)
}

fn profile_key(profile: &Profile) -> anyhow::Result<Option<String>> {
    match (&profile.api_key, &profile.api_key_file) {
        (Some(key), _) => Ok(Some(key.clone())),
        (None, Some(file)) => match std::fs::read_to_string(file) {
            Ok(key) => Ok(Some(key)),
            Err(error) => {
                let class = if error.kind() == ErrorKind::NotFound { Class::NotFound } else { Class::Other };
                Err(fail(class, format!("cannot read the profile's key in {}: {error}", file.display())))
            }
        },
        (None, None) => Ok(None),
    }
}

/// The admin key of the server on this machine.
fn local_key(url: &str, env: Env<'_>) -> anyhow::Result<String> {
    if !is_loopback(url) {
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
    fn a_key_of_a_profile_goes_to_the_server_of_the_profile_only() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("stele");
        std::fs::create_dir(&dir).expect("a directory");
        let file =
            "[profiles.w]\nurl = 'https://w'\napi_key='kw'\n[profiles.n]\napi_key_file = '/nowhere/key'\n";
        std::fs::write(dir.join(FILE), file).expect("written");
        let refused = |vars: &[_], flags| {
            let error = found(home.path(), vars, &flags).expect_err("refused");
            (crate::failure::class(&error), error.to_string())
        };
        let (class, text) = refused(&[], flags(Some("https://other"), Some("w")));
        assert!(class == Class::Usage && text.contains("is not sent to https://other"), "{text}");
        let vars = [("STELE_PROFILE", "w"), ("STELE_URL", "http://w")];
        assert!(refused(&vars, flags(None, None)).1.contains("is not sent to http://w"));
        let with_key = [vars[0], vars[1], ("STELE_API_KEY", "ke")];
        assert!(found(home.path(), &with_key, &flags(None, None)).is_ok(), "a key of the environment");
        assert!(
            found(home.path(), &[], &flags(Some("https://W:443/"), Some("w"))).is_ok(),
            "the same server"
        );
        assert_eq!(refused(&[], flags(None, Some("n"))).0, Class::NotFound);
    }

    #[test]
    fn a_key_that_no_header_takes_is_refused_by_the_name_of_its_source() {
        let home = tempfile::tempdir().expect("a directory");
        for bad in ["two\nlines", "a b", "schlüssel", " "] {
            let error = found(home.path(), &[("STELE_API_KEY", bad)], &flags(None, None)).expect_err(bad);
            assert!(error.to_string().starts_with("STELE_API_KEY is no key"), "{error}");
        }
    }

    #[test]
    fn keys_in_the_file_are_seen_however_they_are_written() {
        let holds = |text: &str| toml::from_str::<Profiles>(text).expect("profiles").hold_keys();
        assert!(holds("[profiles.a]\napi_key='k'"));
        assert!(holds("[profiles.a]\n\"api_key\"   = 'k'"));
        assert!(!holds("# api_key = 'x'\n[profiles.a]\napi_key_file = 'k'"));
    }

    #[test]
    fn the_local_admin_key_goes_to_this_machine_only() {
        for other in [
            "http://example.com",
            "http://localhost@example.com",
            "http://127.0.0.1.example.com",
            "https://[::2]",
        ] {
            let home = tempfile::tempdir().expect("a directory");
            let refused = found(home.path(), &[], &flags(Some(other), None)).expect_err("no key");
            assert!(refused.to_string().contains("STELE_API_KEY"), "{refused}");
        }
    }
}
