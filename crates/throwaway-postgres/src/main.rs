//! Starts a throw-away PostgreSQL, prints the address of an empty database on it, and takes it away again when
//! standard input ends: `coproc PG { throwaway-postgres; }; read -r URL <&"${PG[0]}"`.

use std::io::{Read, Write};

use throwaway_postgres::Cluster;

fn main() -> std::io::Result<()> {
    let cluster = Cluster::start(&["max_connections=200", "shared_buffers=128MB"]);
    cluster.sql("postgres", "CREATE DATABASE stele");
    writeln!(std::io::stdout(), "{}", cluster.url("stele"))?;
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
