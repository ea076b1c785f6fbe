//! Mounts one store in the foreground, for trying the file system without the command line's daemon and supervisor:
//! `mountpoint [--allow-other] [--uid N] [--gid N] STORE[:ro] DIR`, with `STELE_URL` and `STELE_API_KEY`. It ends with
//! the mount, or when its standard input does.

use std::io::Read;
use std::sync::Arc;

use stele_mount::{Access, Mount, Options, Owner};

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let allow_other = take(&mut words, "--allow-other", false).is_some();
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok()).unwrap_or(0);
    let owner =
        Owner { uid: number(take(&mut words, "--uid", true)), gid: number(take(&mut words, "--gid", true)) };
    let [store, dir] = &words[..] else { panic!("usage: mountpoint STORE[:ro] DIR") };
    let (store, access) = match store.strip_suffix(":ro") {
        Some(store) => (store, Access::ReadOnly),
        None => (store.as_str(), Access::ReadWrite),
    };
    #[expect(clippy::disallowed_methods, reason = "a program of its own, which has no configuration")]
    let of = |name: &str| std::env::var(name).unwrap_or_default();
    let client = Arc::new(stele_client::Client::new(&of("STELE_URL"), of("STELE_API_KEY")));
    let id = store.strip_prefix("memstore_01").and_then(stele_core::id::from_base58);
    let id = id.map_or_else(|| store.to_owned(), |id| stele_core::id::StoreId::from_bytes(id).to_string());
    let options = Options {
        store: id,
        name: store.to_owned(),
        access,
        dir: dir.into(),
        owner,
        allow_other,
        cache_bytes: Options::CACHE_BYTES,
    };
    let mount = Mount::start(client, options).expect("mounts");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("reads");
    let status = mount.status();
    let failed = mount.unmount().expect("unmounts");
    eprintln!("{status:?}, {failed} failed");
}

fn take(words: &mut Vec<String>, name: &str, value: bool) -> Option<String> {
    let at = words.iter().position(|word| word == name)?;
    words.remove(at);
    if value { Some(words.remove(at)) } else { Some(String::new()) }
}
